//! The user who runs a command, as the server records it: `user@host`.

pub(super) fn user_at_host() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER")
        .or_else(|| variable("LOGNAME"))
        .unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    header_value(&format!("{user}@{host}"))
}

/// A header carries visible ASCII only; a name is not worth a refused request.
fn header_value(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_header_may_carry() {
        assert_eq!(header_value("zoë@host\n1"), "zo?@host?1");
        assert!(user_at_host().contains('@'));
    }
}

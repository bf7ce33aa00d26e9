//! The terminal that stdout is, if it is one.

use std::io::IsTerminal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// `None`: stdout is a file or a pipe, or a terminal that does not say how large it is.
pub(super) fn size() -> Option<Size> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    let (columns, rows) = (size.ws_col.into(), size.ws_row.into());
    (columns > 0 && rows > 0).then_some(Size { columns, rows })
}

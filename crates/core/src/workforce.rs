//! How many schedulers each worker should own.

/// The share of one worker of `schedulers`, so that no two differ by more than one. `others` are those that are there,
/// with or without itself. The first ones by name have what cannot be divided, so that all come to the same answer by
/// themselves.
pub fn share<'a>(worker: &str, others: impl Iterator<Item = &'a str>, schedulers: usize) -> usize {
    let (mut before, mut workers) = (0, 1);
    for other in others.filter(|other| *other != worker) {
        workers += 1;
        before += usize::from(other < worker);
    }
    schedulers / workers + usize::from(before < schedulers % workers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn alone_it_owns_everything() {
        assert_eq!(share("a", [].into_iter(), 100), 100);
        assert_eq!(share("a", ["a"].into_iter(), 100), 100);
    }

    proptest! {
        #[test]
        fn shares_are_even_and_leave_nothing_out(workers in 1..20_usize, schedulers in 0..1000_usize) {
            let names: Vec<String> = (0..workers).map(|number| format!("worker-{number}")).collect();
            let of = |name: &String| share(name, names.iter().map(String::as_str), schedulers);
            let shares: Vec<usize> = names.iter().map(of).collect();
            prop_assert_eq!(shares.iter().sum::<usize>(), schedulers);
            let (least, most) = (shares.iter().min(), shares.iter().max());
            prop_assert!(most.unwrap() - least.unwrap() <= 1);
        }
    }
}

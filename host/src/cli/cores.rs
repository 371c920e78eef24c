//! Work on many things at once, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Threads at most: each has a piece of a file in memory, and the disk is not faster for more.
const MOST: usize = 8;

/// Threads that work best together here.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What `work` makes of each item, in the order of the items. Whoever is free takes the next.
pub fn on_all_cores<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let serve = || {
        let taken = std::iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, work(items.get(at)?)))
        });
        taken.collect::<Vec<_>>()
    };
    let helpers = cores().min(MOST).min(items.len()).saturating_sub(1);
    let mut done = thread::scope(|scope| {
        // Without a thread the work is done here.
        let threads: Vec<_> =
            (0..helpers).filter_map(|_| thread::Builder::new().spawn_scoped(scope, serve).ok()).collect();
        let mut done = serve();
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::on_all_cores;

    #[test]
    fn what_is_made_stands_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        let doubled: Vec<u32> = items.iter().map(|n| n * 2).collect();
        assert_eq!(on_all_cores(&items, |n| n * 2), doubled);
        assert!(on_all_cores(&[], |n: &u32| *n).is_empty());
    }
}

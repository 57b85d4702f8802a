//! One memory budget for what commands and the platform pass to each other: inputs on their way to a command, outputs on their way to the store. Whoever needs
//! more than is left waits for others to finish, so that many large ones at once cost time and not memory.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a process holds of inputs and outputs at a time.
pub const DEFAULT_BUDGET_BYTES: usize = 64 << 20;
/// What is counted: a semaphore has fewer permits than there are bytes.
const UNIT_BYTES: usize = 1024;

/// Memory that many share. Clones share it too.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    free: Arc<Semaphore>,
    total: u32,
}

/// A part of a budget, until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    _permit: OwnedSemaphorePermit,
}

impl MemoryBudget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let total = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        Self { free: Arc::new(Semaphore::new(total as usize)), total }
    }

    /// Waits until this many bytes are free and takes them, first come first served. What is larger than the whole budget takes all of it and goes alone.
    pub async fn reserve(&self, bytes: usize) -> Reservation {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.total);
        let permit = Arc::clone(&self.free).acquire_many_owned(units).await;
        Reservation { _permit: permit.expect("a budget is never closed") }
    }

    /// What is free now.
    pub fn free_bytes(&self) -> usize {
        self.free.available_permits() * UNIT_BYTES
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(DEFAULT_BUDGET_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll(work: std::pin::Pin<&mut impl Future<Output = Reservation>>) -> Poll<Reservation> {
        work.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_reservation_waits_for_the_ones_before_it() {
        let budget = MemoryBudget::new(10 << 10);
        let Poll::Ready(first) = poll(pin!(budget.reserve(8 << 10))) else { panic!("there is room") };
        let mut second = pin!(budget.reserve(4 << 10));
        assert!(poll(second.as_mut()).is_pending());
        assert_eq!(budget.free_bytes(), 0, "what is left is kept for who waits first");
        drop(first);
        assert!(poll(second.as_mut()).is_ready());
        assert_eq!(budget.free_bytes(), 10 << 10);
    }

    #[test]
    fn what_is_larger_than_the_budget_goes_alone() {
        let budget = MemoryBudget::new(10 << 10);
        let Poll::Ready(all) = poll(pin!(budget.reserve(usize::MAX))) else { panic!("nobody else is there") };
        assert!(poll(pin!(budget.reserve(1))).is_pending());
        drop(all);
        assert!(poll(pin!(budget.reserve(1))).is_ready());
    }
}

//! What one step may hold here: a transaction has a hundred items and four megabytes, and a step is one transaction.

use runvoy_model::limit::StepLimits;

/// With what comes along (the job, its guard, the journal, the key, the receipt) each stays below a hundred items: twenty tasks and sixty rows of
/// what they set in motion; sixteen dead letters, each with its new execution, its lock, its place in the line for that and its incident.
pub(crate) const STEP: StepLimits = StepLimits { rows: 60, tasks: 20, bytes: 1 << 20, leases: 20, letters: 16, moves: 20, forgotten: 80 };

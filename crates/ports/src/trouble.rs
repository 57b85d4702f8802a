//! What a dependency said of its own failure, somewhere among the causes of an error. The edges answer by it; whether the same call may succeed
//! later is the error's own to say.

use std::error::Error;

/// What a dependency said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It takes no more requests now: too many came.
    Throttled,
    /// It failed inside.
    Faulty,
}

/// An error of which the dependency said what it is.
#[derive(Debug, thiserror::Error)]
#[error("{}", .trouble.as_str())]
struct Troubled {
    trouble: Trouble,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl Trouble {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Faulty => "failed inside",
        }
    }

    /// The same error, of which this is known.
    pub fn mark(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Box<dyn Error + Send + Sync> {
        Box::new(Troubled { trouble: self, source: source.into() })
    }

    /// What is known of an error, from it or one of its causes.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(troubled) = error.downcast_ref::<Troubled>() {
                return Some(troubled.trouble);
            }
            next = error.source();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::LeaseError;
    use crate::store::StoreError;

    #[test]
    fn trouble_is_found_among_the_causes() {
        let store = StoreError::Unavailable(Trouble::Throttled.mark("too many"));
        assert_eq!(Trouble::of(&store), Some(Trouble::Throttled));
        assert_eq!(Trouble::of(&LeaseError::Unavailable(Box::new(store))), Some(Trouble::Throttled));
        assert_eq!(Trouble::of(&StoreError::Unavailable("on fire".into())), None);
    }
}

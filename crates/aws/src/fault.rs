//! The one error inside this crate, and its only maps: from the SDK's errors, and to those of the ports.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use runvoy_ports::log::LogError;
use runvoy_ports::store::StoreError;
use runvoy_ports::trouble::Trouble;

/// What went wrong between here and AWS.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Something that was looked at has changed since: look again, decide again.
    #[error("another writer was faster")]
    Conflict,
    /// A busy partition cancelled a transaction, which the SDK does not send again: look again, a little later.
    #[error("DynamoDB is busy")]
    Busy(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// AWS cannot answer now, or its answer was lost.
    #[error("{service} cannot be reached or does not answer ({code})")]
    Unavailable {
        /// Which part of AWS.
        service: &'static str,
        /// What it said.
        code: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// AWS refuses: a permission, a name, a limit. Trying again does not help; a person must look.
    #[error("{service} refuses ({code}): {message}")]
    Refused {
        /// Which part of AWS.
        service: &'static str,
        /// What it said.
        code: String,
        /// And how.
        message: String,
    },
    /// What is stored cannot be trusted.
    #[error("{0}")]
    Damaged(String),
    /// What is stored is whole, and not all of it is known here: a newer server may have written it.
    #[error("{0}")]
    Foreign(String),
}

/// Codes that say: too many requests.
const THROTTLED: [&str; 9] = [
    "ThrottlingException",
    "ThrottlingError",
    "Throttling",
    "RequestThrottled",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "ProvisionedThroughputExceeded",
    "SlowDown",
];

/// Codes that say: AWS failed inside.
const FAULTY: [&str; 3] = ["InternalServerError", "InternalFailure", "InternalError"];

/// Other codes that say: not now.
const PASSING: [&str; 3] = ["TransactionInProgressException", "ServiceUnavailable", "OperationAbortedException"];

/// What a code says of the part of AWS that gave it.
fn trouble_of(code: &str) -> Option<Trouble> {
    if THROTTLED.contains(&code) {
        Some(Trouble::Throttled)
    } else if FAULTY.contains(&code) {
        Some(Trouble::Faulty)
    } else {
        None
    }
}

/// Where a text ceases to be what it should be. What stands there is not said: it may be somebody's value, and this is told to many.
pub(crate) fn spot(error: &serde_json::Error) -> String {
    format!("{:?} at line {} column {}", error.classify(), error.line(), error.column())
}

impl Fault {
    /// What reading a record as JSON came to.
    pub(crate) fn unread(what: &str, error: &serde_json::Error) -> Self {
        let message = format!("{what} cannot be read: {}", spot(error));
        if error.is_data() { Self::Foreign(message) } else { Self::Damaged(message) }
    }

    /// What an SDK call came to.
    pub(crate) fn of<E, R>(service: &'static str, error: SdkError<E, R>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        let code = error.code().map(str::to_owned);
        match code {
            Some(code) if code == "ConditionalCheckFailedException" || code == "TransactionConflictException" => Self::Conflict,
            Some(code) if trouble_of(&code).is_none() && !PASSING.contains(&code.as_str()) => {
                let message = error.message().unwrap_or("no message").to_owned();
                Self::Refused { service, code, message }
            }
            code => {
                let source: Box<dyn std::error::Error + Send + Sync> = match code.as_deref().and_then(trouble_of) {
                    Some(trouble) => trouble.mark(error),
                    None => Box::new(error),
                };
                Self::Unavailable { service, code: code.unwrap_or_else(|| "no answer".to_owned()), source }
            }
        }
    }

    /// What a transaction came to: the reasons of its cancellation decide.
    pub(crate) fn of_transaction<R>(error: SdkError<TransactWriteItemsError, R>) -> Self
    where
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        if let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() {
            let codes: Vec<&str> = cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
            let said = |code: &str| codes.contains(&code);
            if said("ValidationError") || said("ItemCollectionSizeLimitExceeded") {
                let reasons = cancelled.cancellation_reasons().iter();
                let message = reasons.filter_map(|reason| reason.message()).collect::<Vec<_>>().join("; ");
                return Self::Refused { service: "DynamoDB", code: codes.join(" "), message };
            }
            if said("ConditionalCheckFailed") || said("TransactionConflict") || codes.is_empty() {
                return Self::Conflict;
            }
            if said("ThrottlingError") || said("ProvisionedThroughputExceeded") {
                return Self::Busy(Trouble::Throttled.mark(error));
            }
            return Self::Unavailable { service: "DynamoDB", code: codes.join(" "), source: Box::new(error) };
        }
        Self::of("DynamoDB", error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged(what) => Self::Damaged(what),
            // A refusal may end with a permission that is given: the caller tries again, and `/readyz` says why.
            fault => Self::Unavailable(Box::new(fault)),
        }
    }
}

/// What a port that is used from inside this crate came to: mostly a fault that was made into its error on the way.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(what) => Self::Damaged(what),
            StoreError::Unavailable(source) => match source.downcast::<Self>() {
                Ok(fault) => *fault,
                Err(source) => Self::Unavailable { service: "S3", code: "no answer".to_owned(), source },
            },
            error => Self::Unavailable { service: "S3", code: "no answer".to_owned(), source: Box::new(error) },
        }
    }
}

impl From<Fault> for LogError {
    fn from(fault: Fault) -> Self {
        Self::Storage(Box::new(fault))
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::spec::Spec;

    use super::*;

    /// What a call to S3 that was refused with this code comes to.
    fn refused(code: &str) -> Fault {
        use aws_sdk_s3::operation::get_object::GetObjectError;
        use aws_smithy_types::error::ErrorMetadata;
        let error = GetObjectError::generic(ErrorMetadata::builder().code(code).build());
        Fault::of("S3", SdkError::service_error(error, ()))
    }

    #[test]
    fn throttling_and_internal_faults_are_told_apart() {
        for (codes, expected) in [(&THROTTLED[..], Some(Trouble::Throttled)), (&FAULTY[..], Some(Trouble::Faulty)), (&PASSING[..], None)] {
            for code in codes {
                let error = StoreError::from(refused(code));
                assert!(matches!(error, StoreError::Unavailable(_)), "{code}");
                assert_eq!(Trouble::of(&error), expected, "{code}");
            }
        }
        assert!(matches!(refused("AccessDenied"), Fault::Refused { .. }));
    }

    #[test]
    fn a_transaction_that_a_busy_partition_cancels_is_throttled() {
        use aws_sdk_dynamodb::types::CancellationReason;
        use aws_sdk_dynamodb::types::error::TransactionCanceledException;
        let cancelled = |codes: &[&str]| {
            let reasons = codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect();
            let error = TransactionCanceledException::builder().set_cancellation_reasons(Some(reasons)).build();
            Fault::of_transaction(SdkError::service_error(TransactWriteItemsError::TransactionCanceledException(error), ()))
        };
        let busy = cancelled(&["None", "ThrottlingError"]);
        assert!(matches!(busy, Fault::Busy(_)), "{busy:?}");
        assert_eq!(Trouble::of(&StoreError::from(busy)), Some(Trouble::Throttled));
        assert!(matches!(cancelled(&["ThrottlingError", "ConditionalCheckFailed"]), Fault::Conflict));
    }

    #[test]
    fn what_cannot_be_read_is_told_without_its_values() {
        let unread = |text: &str| Fault::unread("the spec", &serde_json::from_str::<Spec>(text).expect_err("no spec"));
        let foreign = unread(r#"{"command":"make","env":"hunter2"}"#);
        let Fault::Foreign(why) = &foreign else { panic!("{foreign:?}") };
        assert!(why.starts_with("the spec cannot be read: Data at line 1") && !why.contains("hunter2"), "{why}");
        for torn in ["{torn", "", r#"{"command":"hunt"#] {
            let torn = unread(torn);
            assert!(matches!(&torn, Fault::Damaged(why) if !why.contains("hunt")), "{torn:?}");
        }
    }
}

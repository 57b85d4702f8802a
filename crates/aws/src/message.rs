//! The message that says that an execution can be leased. It is a hint and carries nothing that is not in the record.

use runvoy_model::id::{ExecutionId, Id};
use runvoy_model::name::Name;
use serde::{Deserialize, Serialize};

/// A wake-up for whoever serves a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WakeUp {
    /// What can be leased.
    pub execution: ExecutionId,
    /// From where.
    pub queue: Name,
    /// For which attempt, from 1.
    pub attempt: u32,
}

/// As it travels. An execution is called a job there.
#[derive(Serialize, Deserialize)]
struct Body {
    job_id: String,
    queue: Name,
    attempt: u32,
}

impl WakeUp {
    /// The body of the message.
    pub fn to_body(&self) -> String {
        let body = Body { job_id: self.execution.to_string(), queue: self.queue.clone(), attempt: self.attempt };
        serde_json::to_string(&body).expect("texts and a number are JSON")
    }

    /// Reads a body that came from a queue; `Err` says why it cannot be one of these.
    pub fn parse(body: &str, from: &Name) -> Result<Self, String> {
        let body: Body = serde_json::from_str(body).map_err(|error| error.to_string())?;
        // Others write ids with dashes.
        let id: Id = body.job_id.replace('-', "").parse().map_err(|_| format!("job_id is no id: {}", body.job_id))?;
        if body.queue != *from {
            return Err(format!("it is for queue {}", body.queue));
        }
        Ok(Self { execution: ExecutionId(id), queue: body.queue, attempt: body.attempt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> Name {
        Name::new(name).expect("a name")
    }

    #[test]
    fn a_wake_up_is_read_back_as_it_was_sent() {
        let wake = WakeUp { execution: ExecutionId::from_bytes([7; 16]), queue: queue("build/x"), attempt: 2 };
        assert_eq!(wake.to_body(), r#"{"job_id":"07070707070707070707070707070707","queue":"build/x","attempt":2}"#);
        assert_eq!(WakeUp::parse(&wake.to_body(), &queue("build/x")), Ok(wake));
    }

    #[test]
    fn an_id_may_have_dashes_and_the_body_more_in_it() {
        let body = r#"{"job_id":"01234567-89ab-cdef-0123-456789abcdef","queue":"default","attempt":1,"trace":"t"}"#;
        let read = WakeUp::parse(body, &queue("default")).expect("a wake-up");
        assert_eq!(read.execution.to_string(), "0123456789abcdef0123456789abcdef");
    }

    #[test]
    fn what_is_none_says_why() {
        let good = r#"{"job_id":"07070707070707070707070707070707","queue":"default","attempt":1}"#;
        assert_eq!(WakeUp::parse(good, &queue("other")), Err("it is for queue default".to_owned()));
        for bad in ["", "hello", "{}", r#"{"job_id":"x","queue":"default","attempt":1}"#, r#"{"job_id":1,"queue":"default","attempt":1}"#] {
            assert!(WakeUp::parse(bad, &queue("default")).is_err(), "{bad}");
        }
    }
}

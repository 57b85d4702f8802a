//! The steps of a start, so that a failure can say where it happened, and what a starting child tells its spawner.
//! Pure: no allocation either, because a child that shares its parent's memory uses it.

/// A step of starting a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// Making the work directory.
    MakeDirectory = 1,
    /// Making the cgroups.
    MakeCgroup,
    /// Setting a limit; the detail names it.
    SetLimit,
    /// Making a pipe or reading a large request.
    Prepare,
    /// Making the process.
    Clone,
    /// Setting up the namespace.
    Namespace,
    /// Entering the cgroups.
    EnterCgroup,
    /// Standard output and error, or the terminal.
    Descriptors,
    /// Open files or file size.
    ResourceLimit,
    /// Giving up privileges.
    Privileges,
    /// Becoming the other user.
    User,
    /// Landlock and the system call filter.
    Confine,
    /// Entering the work directory.
    EnterDirectory,
    /// Becoming the program.
    Execute,
}

impl Step {
    const ALL: [Self; 14] = [
        Self::MakeDirectory,
        Self::MakeCgroup,
        Self::SetLimit,
        Self::Prepare,
        Self::Clone,
        Self::Namespace,
        Self::EnterCgroup,
        Self::Descriptors,
        Self::ResourceLimit,
        Self::Privileges,
        Self::User,
        Self::Confine,
        Self::EnterDirectory,
        Self::Execute,
    ];

    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == number)
    }
}

/// What a child or an init process tells its spawner through the status channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// The program runs. Only an init process says so; otherwise the end of the channel does.
    Executed,
    /// A step failed with this error number.
    Failed { step: Step, errno: i32 },
    /// The main process has ended with this wait status, and nothing of it is left. Only an init process says so.
    Ended { status: i32, cpu_us: u64, max_rss_kib: u64 },
}

/// The size of a record.
pub(crate) const RECORD: usize = 24;

impl Record {
    pub(crate) fn to_bytes(self) -> [u8; RECORD] {
        let (kind, step, number, cpu_us, max_rss_kib) = match self {
            Self::Executed => (1u8, 0, 0, 0, 0),
            Self::Failed { step, errno } => (2, step as u8, errno, 0, 0),
            Self::Ended { status, cpu_us, max_rss_kib } => (3, 0, status, cpu_us, max_rss_kib),
        };
        let mut bytes = [0; RECORD];
        bytes[0] = kind;
        bytes[1] = step;
        bytes[4..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..16].copy_from_slice(&cpu_us.to_le_bytes());
        bytes[16..24].copy_from_slice(&max_rss_kib.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RECORD] = bytes.try_into().ok()?;
        let number = i32::from_le_bytes(bytes[4..8].try_into().ok()?);
        match bytes[0] {
            1 => Some(Self::Executed),
            2 => Some(Self::Failed { step: Step::from_u8(bytes[1])?, errno: number }),
            3 => Some(Self::Ended {
                status: number,
                cpu_us: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
                max_rss_kib: u64::from_le_bytes(bytes[16..24].try_into().ok()?),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_and_record_comes_back() {
        for step in Step::ALL {
            let record = Record::Failed { step, errno: libc::ENOENT };
            assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        }
        for record in [Record::Executed, Record::Ended { status: -1, cpu_us: u64::MAX, max_rss_kib: 1 }] {
            assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        }
        assert_eq!(Record::from_bytes(&[]), None);
    }
}

//! The tables: their names, keys and indexes. What is in an item is known by the file of that noun.

/// A table of the installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Executions, one item each.
    Executions,
    /// Jobs, their tasks and edges.
    Jobs,
    /// Events: the journal of steps, the log by place and by entity, and the contract's own items.
    Events,
    /// Locks and who waits for them.
    Locks,
    /// API keys by their hash.
    ApiKeys,
    /// Claims of keys.
    PendingApiKeys,
    /// Images.
    Images,
    /// Secrets, sealed.
    Secrets,
    /// Open WebSocket connections behind a gateway.
    WebsocketConnections,
    /// Whatever else people manage: users, groups, rules, playbooks, incidents.
    Records,
    /// Receipts of steps, keys of submits, counters and cursors.
    Marks,
    /// Lines of executions until they are sealed.
    Logs,
    /// What workers last said of themselves.
    Workers,
    /// Counters of costs, and how far the log was counted.
    Costs,
}

/// An index: its name, and its partition and sort attributes.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// The partition attribute.
    pub hash: (&'static str, Kind),
    /// The sort attribute.
    pub range: Option<(&'static str, Kind)>,
    /// What it holds beside the keys.
    pub holds: Holds,
}

/// The type of a key attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Number.
    Number,
}

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Keys only.
    Keys,
    /// Keys and these.
    These(&'static [&'static str]),
    /// Whole items.
    All,
}

use Holds::{All, Keys, These};
use Kind::{Number, Text};

const fn index(name: &'static str, hash: &'static str, range: &'static str) -> Index {
    Index { name, hash: (hash, Text), range: Some((range, Text)), holds: Keys }
}

/// Executions by how they stand, by day, by user, by status, of a job, by the end of their id.
const EXECUTION_INDEXES: [Index; 6] = [
    index("standing-index", "stand", "stand_sort"),
    index("day-index", "day_shard", "execution_id"),
    index("user-index", "user_day_shard", "execution_id"),
    index("status-index", "status_day_shard", "execution_id"),
    index("job-index", "job_id", "execution_id"),
    index("suffix-index", "suffix", "execution_id"),
];

const JOB_INDEXES: [Index; 4] = [
    index("standing-index", "stand", "job_id"),
    index("day-index", "day_shard", "job_id"),
    index("user-index", "user_day_shard", "job_id"),
    index("suffix-index", "suffix", "job_id"),
];

/// Of one job, and read consistently: its tasks by place and by how they stand.
const TASK_INDEXES: [Index; 2] = [
    Index {
        name: "place-index",
        hash: ("job_id", Text),
        range: Some(("place", Number)),
        holds: These(&["phase", "batch", "task", "execution_id"]),
    },
    index("task-standing-index", "job_id", "task_stand"),
];

const KIND_INDEX: Index = Index { name: "kind-index", hash: ("kind_shard", Text), range: Some(("place", Number)), holds: Keys };

const fn contract_index(name: &'static str, hash: &'static str, range: &'static str) -> Index {
    Index { name, hash: (hash, Text), range: Some((range, Text)), holds: All }
}

/// The seven of the event contract.
const CONTRACT_INDEXES: [Index; 7] = [
    contract_index("GSI1-index", "GSI1PK", "GSI1SK"),
    contract_index("GSI2-index", "GSI2PK", "GSI2SK"),
    contract_index("GSI3-index", "GSI3PK", "GSI3SK"),
    contract_index("GSI4-index", "GSI4PK", "GSI4SK"),
    contract_index("GSI5-index", "GSI5PK", "GSI5SK"),
    contract_index("GSI6-index", "GSI6PK", "GSI6SK"),
    contract_index("GSI7-index", "GSI7PK", "GSI7SK"),
];

impl Table {
    /// Every table.
    pub const ALL: [Self; 14] = [
        Self::Executions,
        Self::Jobs,
        Self::Events,
        Self::Locks,
        Self::ApiKeys,
        Self::PendingApiKeys,
        Self::Images,
        Self::Secrets,
        Self::WebsocketConnections,
        Self::Records,
        Self::Marks,
        Self::Logs,
        Self::Workers,
        Self::Costs,
    ];

    /// The part of its name after the prefix.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Executions => "executions",
            Self::Jobs => "jobs",
            Self::Events => "events",
            Self::Locks => "locks",
            Self::ApiKeys => "api-keys",
            Self::PendingApiKeys => "pending-api-keys",
            Self::Images => "images",
            Self::Secrets => "secrets",
            Self::WebsocketConnections => "websocket-connections",
            Self::Records => "records",
            Self::Marks => "marks",
            Self::Logs => "logs",
            Self::Workers => "workers",
            Self::Costs => "costs",
        }
    }

    /// The partition attribute, and the sort attribute where there is one.
    pub const fn key(self) -> (&'static str, Option<(&'static str, Kind)>) {
        match self {
            Self::Executions => ("execution_id", None),
            Self::Jobs => ("job_id", Some(("entry", Text))),
            Self::Events => ("PK", Some(("SK", Text))),
            Self::Locks => ("lock_name", Some(("entry", Text))),
            Self::ApiKeys => ("api_key_hash", None),
            Self::PendingApiKeys => ("secret_token", None),
            Self::Images => ("image", None),
            Self::Secrets => ("name", None),
            Self::WebsocketConnections => ("connection_id", None),
            Self::Records => ("kind", Some(("name", Text))),
            Self::Marks => ("mark", None),
            Self::Logs => ("execution_id", Some(("line", Number))),
            Self::Workers => ("worker_id", None),
            Self::Costs => ("sums", Some(("day_name", Text))),
        }
    }

    /// Indexes that may lag behind the table.
    pub fn indexes(self, contract: bool) -> Vec<Index> {
        match self {
            Self::Executions => EXECUTION_INDEXES.to_vec(),
            Self::Jobs => JOB_INDEXES.to_vec(),
            Self::Events if contract => CONTRACT_INDEXES.iter().copied().chain([KIND_INDEX]).collect(),
            Self::Events => vec![KIND_INDEX],
            Self::Locks => vec![index("held-index", "held", "lock_name")],
            Self::ApiKeys => vec![index("user_email-index", "user_email", "api_key_hash")],
            Self::WebsocketConnections => vec![index("execution_id-index", "execution_id", "connection_id")],
            Self::Logs => vec![Index { range: Some(("last_at", Number)), ..index("sealed-index", "sealed_shard", "last_at") }],
            Self::PendingApiKeys | Self::Images | Self::Secrets | Self::Records | Self::Marks | Self::Workers | Self::Costs => Vec::new(),
        }
    }

    /// Indexes within one partition, which never lag.
    pub const fn local_indexes(self) -> &'static [Index] {
        match self {
            Self::Jobs => &TASK_INDEXES,
            _ => &[],
        }
    }

    /// The attribute after whose time an item is tidied away.
    pub const fn ttl(self) -> Option<&'static str> {
        match self {
            Self::Events | Self::Marks => Some("ttl"),
            Self::ApiKeys | Self::PendingApiKeys | Self::WebsocketConnections | Self::Workers => Some("expires_at"),
            _ => None,
        }
    }
}

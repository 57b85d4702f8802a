//! What airunner's own clients and workers rely on never changes: `job-v1.txt` is a copy of the contract's tables, which no program
//! writes, and `proto/` holds every line of it. Fields that we add to its messages have numbers from 100 up; new RPCs are free, other enum values are not.

use std::collections::BTreeSet;
use std::path::Path;

use protox::prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};

const CONTRACT: &str = include_str!("job-v1.txt");
/// The first number that is ours.
const OURS_FROM: u32 = 100;

#[test]
fn proto_holds_every_name_and_number_of_the_contract() {
    assert_eq!(breaches(&lines(CONTRACT), &lines(&described())), Vec::<String>::new());
}

#[test]
fn the_copy_of_the_contract_is_whole() {
    let count = |kind: &str| lines(CONTRACT).iter().filter(|line| line.split(' ').next() == Some(kind)).count();
    assert_eq!(["rpc", "message", "field", "value"].map(count), [7, 39, 133, 28]);
}

#[test]
fn a_changed_contract_is_noticed() {
    let change = |from: &str, to: &str| {
        assert!(described().contains(from), "{from}");
        breaches(&lines(CONTRACT), &lines(&described().replace(from, to)))
    };
    for (from, to) in [
        ("rpc JobService UpdateJob unary", "rpc JobService UpdateJob server-stream"),
        ("rpc JobService UpdateJob ", "rpc JobService ExtendJob "),
        ("field Job 2 job_params JobParams", "field Job 7 job_params JobParams"),
        ("field Job 2 job_params JobParams", "field Job 2 params JobParams"),
        ("field Job 2 job_params JobParams", "field Job 2 job_params bytes"),
        ("field JobParams 8 args repeated string", "field JobParams 8 args string"),
        ("field JobEvent 8 output OutputEvent oneof event_data", "field JobEvent 8 output OutputEvent"),
        ("message UpdateJobResponse\n", ""),
        ("message UpdateJobResponse\n", "message UpdateJobResponse\nfield UpdateJobResponse 99 late bool\n"),
        ("value JobState 5 JOB_STATE_CANCELLED", "value JobState 6 JOB_STATE_CANCELLED"),
        ("value JobState 5 JOB_STATE_CANCELLED\n", "value JobState 5 JOB_STATE_CANCELLED\nvalue JobState 100 JOB_STATE_LOST\n"),
    ] {
        assert_ne!(change(from, to), Vec::<String>::new(), "{from} → {to}");
    }
    let added =
        "message UpdateJobResponse\nfield UpdateJobResponse 100 late bool\nrpc JobService RestJob unary A B\nmessage A\nfield A 1 b bool\n";
    assert_eq!(change("message UpdateJobResponse\n", added), Vec::<String>::new());
}

/// How `ours` breaks the contract.
fn breaches(contract: &BTreeSet<&str>, ours: &BTreeSet<&str>) -> Vec<String> {
    let missing = contract.difference(ours).map(|line| format!("missing: {line}"));
    let added = ours.difference(contract).filter(|line| !may_be_added(contract, line)).map(|line| format!("added: {line}"));
    missing.chain(added).collect()
}

fn may_be_added(contract: &BTreeSet<&str>, line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let is_of_the_contract = |kind: &str| contract.iter().any(|line| line.split(' ').take(2).eq([kind, words[1]]));
    match words[0] {
        "field" => !is_of_the_contract("message") || words[2].parse::<u32>().expect("a number") >= OURS_FROM,
        "value" => !is_of_the_contract("value"),
        _ => true,
    }
}

fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The package as `proto/` has it, in the words of the copy.
fn described() -> String {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let mut compiler = protox::Compiler::new([&proto]).expect("proto/ is there");
    compiler.include_imports(true).open_files(["job/v1/job.proto"]).expect("the files of proto/ are well-formed");
    let pool = compiler.descriptor_pool();
    let services = pool.services().filter(|service| service.package_name() == "job.v1");
    let rpcs = services.flat_map(|service| service.methods().map(|method| rpc(service.name(), &method)).collect::<Vec<_>>());
    let messages = pool.all_messages().filter(|message| message.package_name() == "job.v1" && !message.is_map_entry());
    let enums = pool.all_enums().filter(|this| this.package_name() == "job.v1");
    let lines = rpcs.chain(messages.flat_map(|this| message(&this))).chain(enums.flat_map(|this| values(&this)));
    lines.map(|line| line + "\n").collect()
}

fn rpc(service: &str, method: &MethodDescriptor) -> String {
    let kind = match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => "unary",
        (false, true) => "server-stream",
        (true, false) => "client-stream",
        (true, true) => "bidi-stream",
    };
    format!("rpc {service} {} {kind} {} {}", method.name(), short(method.input().full_name()), short(method.output().full_name()))
}

fn message(message: &MessageDescriptor) -> Vec<String> {
    let name = short(message.full_name()).to_owned();
    let fields = message.fields().map(|this| format!("field {name} {} {} {}", this.number(), this.name(), typed(&this)));
    std::iter::once(format!("message {name}")).chain(fields).collect()
}

fn values(this: &EnumDescriptor) -> Vec<String> {
    this.values().map(|value| format!("value {} {} {}", short(this.full_name()), value.number(), value.name())).collect()
}

/// A type as a proto file writes it, and the oneof that the field is in. That of an `optional` field counts too: it has another meaning without one.
fn typed(field: &FieldDescriptor) -> String {
    let kind = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            format!("map<{}, {}>", scalar(&entry.map_entry_key_field().kind()), scalar(&entry.map_entry_value_field().kind()))
        }
        kind if field.is_list() => format!("repeated {}", scalar(&kind)),
        kind => scalar(&kind),
    };
    field.containing_oneof().map_or(kind.clone(), |oneof| format!("{kind} oneof {}", oneof.name()))
}

fn scalar(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => short(message.full_name()).to_owned(),
        Kind::Enum(this) => short(this.full_name()).to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// A name as it is said within the package.
fn short(full_name: &str) -> &str {
    full_name.strip_prefix("job.v1.").unwrap_or(full_name)
}

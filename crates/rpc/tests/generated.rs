//! What is checked in under `src/generated` is what the files in `proto/` make. `RUNVOY_WRITE_PROTO=1` writes it anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use buffa_codegen::{BytesRepr, CodeGenConfig};

const FILES: [&str; 2] = ["job/v1/job.proto", "principal/v1/principal.proto"];

#[test]
fn what_is_checked_in_is_what_the_proto_files_make() {
    let made = tempfile::tempdir().expect("a directory");
    generate(made.path());
    let checked_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated");
    if std::env::var_os("RUNVOY_WRITE_PROTO").is_some() {
        write(made.path(), &checked_in);
    }
    let (made, checked_in) = (contents(made.path()), contents(&checked_in));
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&made), names(&checked_in), "run this test with RUNVOY_WRITE_PROTO=1");
    for (name, text) in &made {
        assert!(checked_in[name] == *text, "{name} is not what proto/ makes: run this test with RUNVOY_WRITE_PROTO=1");
    }
}

fn generate(out: &Path) {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let mut compiler = protox::Compiler::new([&proto]).expect("proto/ is there");
    compiler.include_imports(true).include_source_info(true).open_files(FILES).expect("the files of proto/ are well-formed");
    let scratch = tempfile::tempdir().expect("a directory");
    let descriptors = scratch.path().join("descriptors");
    fs::write(&descriptors, compiler.encode_file_descriptor_set()).expect("descriptors are written");
    let mut config = CodeGenConfig::default();
    config.file_per_package = true;
    config.generate_json = true;
    config.bytes_fields = vec![(".".into(), BytesRepr::Bytes)];
    let config = connectrpc_build::Config::new().buffa_config(config).gate_client_feature(true).emit_rerun_directives(false);
    let config = config.files(&FILES).descriptor_set(descriptors).out_dir(out).include_file("mod.rs");
    config.compile().expect("the descriptors make code");
}

fn write(made: &Path, checked_in: &Path) {
    for (name, _) in contents(checked_in) {
        fs::remove_file(checked_in.join(name)).expect("an old file goes");
    }
    fs::create_dir_all(checked_in).expect("a directory");
    for (name, text) in contents(made) {
        fs::write(checked_in.join(name), text).expect("a new file comes");
    }
}

fn contents(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path: &PathBuf| path.is_file());
    paths
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("text"))
        })
        .collect()
}

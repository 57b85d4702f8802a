//! The `.env` file of a work directory: the user's own environment as text that shells and the usual readers of such files take back
//! byte for byte. Pure.

use std::collections::BTreeMap;

use runvoy_model::name::is_env_name;
use runvoy_ports::lease::Material;

/// Variables with this prefix are for the file, and are in it without the prefix.
const PREFIX: &str = "RUNVOY_USER_";

/// The file, if there is anything to put in it. A secret is in it only if its variable says so by the prefix: a file is easier to
/// lose than a variable.
pub(crate) fn dotenv(env: &BTreeMap<String, String>, secrets: &[Material]) -> Option<Vec<u8>> {
    let given = env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (prefixed, plain): (Vec<_>, Vec<_>) = given.partition(|(name, _)| name.starts_with(PREFIX));
    let secret = secrets.iter().filter(|secret| secret.key_name.starts_with(PREFIX));
    let secret = secret.map(|secret| (secret.key_name.as_str(), secret.value.as_str()));
    // Later ones win: what is meant for the file before what is merely set.
    let entries = plain.into_iter().chain(secret).chain(prefixed);
    let entries: BTreeMap<&str, &str> = entries.map(|(name, value)| (name.strip_prefix(PREFIX).unwrap_or(name), value)).collect();
    let mut text = String::new();
    for (name, value) in entries.into_iter().filter(|(name, _)| is_env_name(name)) {
        text.push_str(&format!("{name}={}\n", quoted(value)));
    }
    (!text.is_empty()).then(|| text.into_bytes())
}

/// A value as a shell reads it; the plainest quotes that do, because other readers know fewer.
fn quoted(value: &str) -> String {
    if value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./:@%+,=-".contains(&b)) {
        return value.to_owned();
    }
    if !value.contains('\'') {
        return format!("'{value}'");
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use runvoy_model::name::Name;

    use super::*;

    fn file(env: &[(&str, &str)], secrets: &[(&str, &str)]) -> Option<String> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let secret = |(key, value): &(&str, &str)| Material {
            name: Name::new("s").expect("a name"),
            key_name: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        let secrets: Vec<Material> = secrets.iter().map(secret).collect();
        dotenv(&env, &secrets).map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn the_prefix_is_removed_and_wins() {
        let text = file(&[("A", "1"), ("B", "2"), ("RUNVOY_USER_B", "3"), ("RUNVOY_USER_", "x"), ("RUNVOY_USER_9", "y")], &[]);
        assert_eq!(text.as_deref(), Some("A=1\nB=3\n"));
        assert_eq!(file(&[], &[]), None);
    }

    #[test]
    fn a_secret_is_in_the_file_only_if_it_says_so() {
        assert_eq!(file(&[], &[("TOKEN", "secret")]), None);
        assert_eq!(file(&[], &[("RUNVOY_USER_TOKEN", "secret")]).as_deref(), Some("TOKEN=secret\n"));
    }

    #[test]
    fn a_shell_reads_back_every_value_byte_for_byte() {
        for value in
            ["", "plain", "two words", "it's", "\"", "a\nb", "\n\n", "it's\n\"$HOME\" `id` \\ \\n", "#x", "$HOME", "é'ü", "a=b c", "\t'"]
        {
            let text = file(&[("VALUE", value)], &[]).expect("a file");
            let script = format!("{text}printf %s \"$VALUE\"");
            let read = Command::new("/bin/sh").arg("-c").arg(&script).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&read.stdout), value, "{text}");
        }
    }
}

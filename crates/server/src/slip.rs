//! Names in a request that are not known and look like ones that are. Other clients may send names of their own, which are ignored; but a lock that was
//! written `lokc` must not be forgotten in silence. Decides by names alone and never looks at a value.

use std::collections::BTreeMap;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, Visitor};
use serde::forward_to_deserialize_any;
use strsim::damerau_levenshtein;

use crate::fault::Fault;

/// Names up to this length may differ by one slip, longer ones by two.
const SHORT_CHARS: usize = 5;
/// Nobody who means one of ours writes a longer one.
const MOST_BYTES: usize = 64;

/// Refuses a field of an object that looks like a slip of one of `T`, or like a parameter of the address.
pub(crate) fn refuse_fields<T: DeserializeOwned>(body: &[u8], parameters: &[&str]) -> Result<(), Fault> {
    // What is no object is refused by whoever opens it.
    let Ok(given) = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(body) else { return Ok(()) };
    let (given, known) = (given.keys().map(String::as_str).collect::<Vec<_>>(), fields_of::<T>());
    for name in given.iter().filter(|name| !known.contains(name)) {
        if let Some(meant) = meant(name, &given, known) {
            return Err(unknown(name, &format!("`{meant}`")));
        }
        let parameter = parameters.iter().copied().find(|parameter| parameter == name).or_else(|| meant(name, &[], parameters));
        if let Some(parameter) = parameter {
            return Err(unknown(name, &format!("the parameter `?{parameter}=true` of the address")));
        }
    }
    Ok(())
}

/// Refuses a parameter of an address that looks like a slip of one of these.
pub(crate) fn refuse_parameters<'q>(given: impl Iterator<Item = &'q str>, known: &[&str]) -> Result<(), Fault> {
    let given: Vec<&str> = given.collect();
    let slip = given.iter().find_map(|name| Some((name, meant(name, &given, known)?)));
    slip.map_or(Ok(()), |(name, meant)| Err(unknown(name, &format!("`{meant}`"))))
}

fn unknown(name: &str, meant: &str) -> Fault {
    Fault::invalid(name, format!("unknown name; did you mean {meant}? Nothing was done"))
}

/// The known name that an unknown one was probably meant to be. One that was given as well was not forgotten: only another way to write it is a slip then.
fn meant<'k>(name: &str, given: &[&str], known: &[&'k str]) -> Option<&'k str> {
    if known.contains(&name) || name.len() > MOST_BYTES {
        return None;
    }
    let plain = fold(name);
    let most = if plain.chars().count() <= SHORT_CHARS { 1 } else { 2 };
    let slips = |known: &str| match damerau_levenshtein(&plain, &fold(known)) {
        0 => Some(0),
        slips if slips <= most && !given.contains(&known) => Some(slips),
        _ => None,
    };
    known.iter().copied().filter_map(|known| Some((slips(known)?, known))).min_by_key(|(slips, _)| *slips).map(|(_, known)| known)
}

/// A name without what people write in different ways: case, and what stands between words.
fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The names of the fields of a type, as it asks for them when it is read.
fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // It is refused at once: only what it asks for matters.
    <T as serde::Deserialize<'_>>::deserialize(Asked(&mut fields)).ok();
    fields
}

/// Remembers which fields are asked for, and has none.
struct Asked<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is nothing to read"))
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, fields: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("there is nothing to read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use runvoy_wire::{RunPlaybookRequest, RunRequest};

    use super::*;

    #[test]
    fn the_fields_of_a_type_are_known() {
        assert_eq!(fields_of::<RunPlaybookRequest>(), ["parameters", "version", "lock_wait"]);
        assert!(fields_of::<RunRequest>().contains(&"git_repo"));
        assert!(fields_of::<Vec<u8>>().is_empty());
    }

    #[test]
    fn a_slip_is_told_with_what_was_meant() {
        let known = fields_of::<RunRequest>();
        for (name, expected) in [
            ("lokc", "lock"),
            ("Lock", "lock"),
            ("lock-wait", "lock_wait"),
            ("lockWait", "lock_wait"),
            ("gitRepo", "git_repo"),
            ("tiemout", "timeout"),
            ("timeouts", "timeout"),
            ("enw", "env"),
            ("secret", "secrets"),
        ] {
            assert_eq!(meant(name, &["command", name], known), Some(expected), "{name}");
        }
        for name in ["lock", "theirs", "tags", "playbook", "user", "id", "", "_", &"lock_".repeat(20)] {
            assert_eq!(meant(name, &["command", name], known), None, "{name}");
        }
    }

    #[test]
    fn what_was_given_was_not_forgotten() {
        let known = fields_of::<RunRequest>();
        assert_eq!(meant("comment", &["command", "comment"], known), None, "a name of somebody else's");
        assert_eq!(meant("comment", &["comment"], known), Some("command"));
        assert_eq!(meant("Command", &["Command", "command"], known), Some("command"), "one of the two is ignored");
    }
}

//! Checks and masks JSON that a command wrote, one element at a time. No tree is built: memory stays at the size of the text, however small its elements are.
//! A tree of `serde_json::Value` takes up to a hundred times its text, so [`Checked::opened_bytes`] says what one would cost before anybody builds it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::bound::{MOST_DEPTH, TOO_DEEP};
use crate::mask::Mask;

/// About what an object takes in memory, however few members it has.
const OBJECT_BYTES: usize = 640;
/// About what any other value takes in memory, and a member's name.
const VALUE_BYTES: usize = 48;
/// The member whose place is noted.
const USAGE: &str = "usage";

/// JSON that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its text: masked, without white space, otherwise as it was written.
    pub text: Vec<u8>,
    /// About how many bytes it would take as a tree of values.
    pub opened_bytes: usize,
    /// Where in the text the value of the outermost `usage` member is.
    pub usage: Option<Range<usize>>,
}

/// Checks the text of one JSON value and masks it; the error says what is wrong with it.
pub fn check(bytes: &[u8], mask: Option<&Arc<Mask>>) -> Result<Checked, String> {
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut writer = Writer { text: Vec::with_capacity(bytes.len()), mask, depth: 0, is_too_deep: false, opened_bytes: 0, usage: None };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Element(&mut writer).deserialize(&mut reader).and_then(|()| reader.end());
    if writer.is_too_deep {
        return Err(format!("it is {TOO_DEEP}"));
    }
    read.map_err(|error| format!("it is not JSON: {error}"))?;
    if has_large_integer(bytes) {
        return Err("it has a number that does not fit: whole numbers go from -9223372036854775808 to 18446744073709551615".to_owned());
    }
    let Writer { text, opened_bytes, usage, .. } = writer;
    Ok(Checked { text, opened_bytes, usage })
}

/// About how many bytes a tree takes, by the same estimate as [`Checked::opened_bytes`].
pub fn opened_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => VALUE_BYTES + text.len(),
        Value::Array(items) => VALUE_BYTES + items.iter().map(opened_bytes).sum::<usize>(),
        Value::Object(members) => {
            OBJECT_BYTES + members.iter().map(|(name, member)| VALUE_BYTES + name.len() + opened_bytes(member)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE_BYTES,
    }
}

/// What was read so far, masked.
struct Writer<'m> {
    text: Vec<u8>,
    mask: Option<&'m Arc<Mask>>,
    depth: usize,
    is_too_deep: bool,
    opened_bytes: usize,
    usage: Option<Range<usize>>,
}

impl Writer<'_> {
    /// Writes a text, masked.
    fn string(&mut self, text: &str) {
        self.opened_bytes += VALUE_BYTES + text.len();
        match self.mask {
            Some(mask) => self.quote(&mask.text(text)),
            None => self.quote(text),
        }
    }

    /// Writes a number. One that holds a secret becomes a text.
    fn number(&mut self, number: &serde_json::Number) {
        self.opened_bytes += VALUE_BYTES;
        let plain = number.to_string();
        match self.mask.map(|mask| mask.text(&plain)).filter(|shown| *shown != plain) {
            Some(shown) => self.quote(&shown),
            None => self.text.extend_from_slice(plain.as_bytes()),
        }
    }

    fn word(&mut self, word: &str) {
        self.opened_bytes += VALUE_BYTES;
        self.text.extend_from_slice(word.as_bytes());
    }

    fn quote(&mut self, text: &str) {
        serde_json::to_writer(&mut self.text, text).expect("a text can be written");
    }

    fn enter<E: de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.opened_bytes += bytes;
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            self.is_too_deep = true;
            return Err(E::custom(TOO_DEEP));
        }
        Ok(())
    }

    fn leave(&mut self, end: u8) {
        self.depth -= 1;
        self.text.push(end);
    }
}

/// Any value.
struct Element<'w, 'm>(&'w mut Writer<'m>);

impl<'de> DeserializeSeed<'de> for Element<'_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.word("null");
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.0.word(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.0.number(&value.into());
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.0.number(&value.into());
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        match serde_json::Number::from_f64(value) {
            Some(number) => self.0.number(&number),
            None => self.0.word("null"),
        }
        Ok(())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.0.string(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let writer = self.0;
        writer.enter(VALUE_BYTES)?;
        writer.text.push(b'[');
        let mut is_first = true;
        loop {
            let before = writer.text.len();
            if !is_first {
                writer.text.push(b',');
            }
            if items.next_element_seed(Element(writer))?.is_none() {
                writer.text.truncate(before);
                writer.leave(b']');
                return Ok(());
            }
            is_first = false;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let writer = self.0;
        writer.enter(OBJECT_BYTES)?;
        writer.text.push(b'{');
        let mut is_first = true;
        loop {
            let before = writer.text.len();
            if !is_first {
                writer.text.push(b',');
            }
            let Some(is_usage) = members.next_key_seed(MemberName(writer))? else {
                writer.text.truncate(before);
                writer.leave(b'}');
                return Ok(());
            };
            writer.text.push(b':');
            let start = writer.text.len();
            members.next_value_seed(Element(writer))?;
            if is_usage && writer.depth == 1 {
                writer.usage = Some(start..writer.text.len());
            }
            is_first = false;
        }
    }
}

/// The name of a member; says whether it is `usage`.
struct MemberName<'w, 'm>(&'w mut Writer<'m>);

impl<'de> DeserializeSeed<'de> for MemberName<'_, '_> {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberName<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<bool, E> {
        self.0.string(name);
        Ok(name == USAGE)
    }
}

/// Whether JSON has a whole number that would become another one when it is read.
fn has_large_integer(json: &[u8]) -> bool {
    let (mut rest, mut quoted) = (json, false);
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'\\' if quoted => after.get(1..).unwrap_or_default(),
            b'"' => {
                quoted = !quoted;
                after
            }
            b'-' | b'0'..=b'9' if !quoted => {
                let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
                let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
                let number = str::from_utf8(number).unwrap_or_default();
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return true;
                }
                after
            }
            _ => after,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(checked: &Checked) -> Value {
        serde_json::from_slice(&checked.text).expect("JSON")
    }

    #[test]
    fn secrets_are_masked_in_names_texts_and_numbers() {
        let mask = Mask::new(&["s3cr3t-token", "12345678"]).expect("not too much").expect("a mask");
        let text = br#"{"a":"x s3cr3t-token y","s3cr3t-token":[1,{"b":"s3cr\u0033t-token"}],"n":12345678,"m":1.5,"t":true}"#;
        let checked = check(text, Some(&mask)).expect("JSON");
        assert_eq!(value(&checked), json!({"a": "x *** y", "***": [1, {"b": "***"}], "n": "***", "m": 1.5, "t": true}));
        assert!(check(b"{\"a\":", Some(&mask)).is_err() && check(b"", None).is_err());
    }

    #[test]
    fn text_is_kept_without_white_space() {
        for (given, kept) in [
            (" [ 1 , -2.50 , null , true , false , \"\\u00e9\\n\" , [ ] , { } ] ", "[1,-2.5,null,true,false,\"é\\n\",[],{}]"),
            ("{ \"b\" : 1 , \"a\" : { \"b\" : [ ] } }", "{\"b\":1,\"a\":{\"b\":[]}}"),
            ("\"x\"", "\"x\""),
        ] {
            let checked = check(given.as_bytes(), None).expect(given);
            assert_eq!(String::from_utf8(checked.text).expect("text"), kept);
        }
        for wrong in ["[1,]", "{\"a\":1,}", "[1 2]", "{\"a\" 1}", "01", "\"\\ud800\"", "\"\u{1}\"", "1e400", "[1]]", "nul"] {
            assert!(check(wrong.as_bytes(), None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_outermost_usage_is_noted() {
        let checked = check(br#"{"a":{"usage":1},"usage": {"tokens": 5},"b":[]}"#, None).expect("JSON");
        assert_eq!(checked.usage.map(|place| checked.text[place].to_vec()), Some(br#"{"tokens":5}"#.to_vec()));
        for without in [&br#"[{"usage":1}]"#[..], br#"{"a":{"usage":1}}"#, b"1"] {
            assert_eq!(check(without, None).expect("JSON").usage, None);
        }
    }

    #[test]
    fn the_estimate_is_that_of_the_tree() {
        for text in ["1", "\"abc\"", "[]", "[1,[2,\"x\"],null]", "{\"a\":{\"b\":[{}]},\"c\":true}"] {
            let checked = check(text.as_bytes(), None).expect(text);
            assert_eq!(checked.opened_bytes, opened_bytes(&value(&checked)), "{text}");
        }
        assert!(check(format!("[{}0]", "0,".repeat(100_000)).as_bytes(), None).expect("JSON").opened_bytes > 4_000_000);
    }

    #[test]
    fn what_could_not_be_read_again_as_it_is_is_refused() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(check(nested(64).as_bytes(), None).is_ok());
        for levels in [65, 127, 100_000] {
            let told = check(nested(levels).as_bytes(), None).expect_err("too deep");
            assert!(told.contains("nested deeper than 64 levels"), "{told}");
        }
        for fits in [
            "18446744073709551615",
            "-9223372036854775808",
            "-0",
            "1e300",
            "36893488147419103232.0",
            r#"{"36893488147419103232":"\"36893488147419103232"}"#,
        ] {
            assert!(check(fits.as_bytes(), None).is_ok(), "{fits}");
        }
        for large in ["18446744073709551616", "[1, -9223372036854775809]", r#"{"a\\":123456789012345678901234567890}"#] {
            let told = check(large.as_bytes(), None).expect_err("it would be another number");
            assert!(told.contains("a number that does not fit"), "{told}");
        }
    }
}

//! The settings file: YAML, read to names and values as if each stood alone.

use anyhow::{Context, Result, bail};

use super::store;

/// A settings file is a flat mapping; a value is a scalar or a list of scalars. What is under a name is named with a dot.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    // What the parser says quotes the file, and a part of it may be a secret: where it stumbled has to do.
    let mut map: std::collections::BTreeMap<String, serde_json::Value> =
        serde_saphyr::from_str(text).map_err(|error| match error.location() {
            Some(at) => anyhow::anyhow!("line {}, column {}: not YAML, or not names with values", at.line(), at.column()),
            None => anyhow::anyhow!("not YAML, or not names with values"),
        })?;
    let store = map.remove("store");
    let scalar = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => Some(value.to_string()),
        serde_json::Value::Null => Some(String::new()),
        _ => None,
    };
    let given = map.into_iter().flat_map(|(name, value)| match value {
        serde_json::Value::Object(parts) => parts.into_iter().map(|(part, value)| (format!("{name}.{part}"), value)).collect(),
        value => vec![(name, value)],
    });
    let given = given
        .map(|(key, value)| {
            let text = match &value {
                serde_json::Value::Array(items) => items.iter().map(scalar).collect::<Option<Vec<_>>>().map(|items| items.join(",")),
                other => scalar(other),
            };
            text.map(|text| (key.clone(), text)).with_context(|| format!("{key}: expected a plain value or a list of them"))
        })
        .collect::<Result<Vec<_>>>()?;
    let Some(store) = store else { return Ok(given) };
    let is_given = |key: &str| given.iter().any(|(name, _)| name == key);
    let mut translated = store::translate(&store)?;
    // Of the queues that there are, this server may serve some.
    translated.retain(|one| one.key != "queues" || !is_given(one.key));
    if let Some(twice) = translated.iter().find(|one| is_given(one.key)) {
        bail!("{} and {} say the same thing: keep one of them", twice.key, twice.spelled);
    }
    Ok(given.into_iter().chain(translated.into_iter().map(|one| (one.key.to_owned(), one.value))).collect())
}

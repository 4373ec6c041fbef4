//! The variables: `WOW_DISPATCH_*`, each of which overrides one key of the files.
//!
//! Called by `loader.rs` with the environment's pairs. Invariant: a variable with our prefix is either one of ours or
//! a problem; others are not looked at. It reads no file.

use std::ffi::OsString;

use crate::error::Refusal;
use crate::file::shown;
use crate::key::{Key, REMOVED, VARIABLE_PREFIX, nearest};
use crate::loader::{Loading, Origin};
use crate::value::Raw;

/// Reads `variables` into `loading`.
pub(crate) fn read(variables: &[(OsString, OsString)], loading: &mut Loading) {
    let mut ours: Vec<(String, &OsString)> = variables
        .iter()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(VARIABLE_PREFIX) || name == REMOVED.1)
        .collect();
    // The system gives them in no order; the report has one.
    ours.sort();
    for (name, value) in ours {
        let origin = Origin::Variable(name.clone());
        if name == REMOVED.1 {
            loading.notice_removed(&origin);
            continue;
        }
        let Some(key) = Key::ALL.into_iter().find(|key| key.variable() == name) else {
            let names = Key::ALL.map(Key::variable);
            let suffix = &name[VARIABLE_PREFIX.len()..];
            let suffixes = names.iter().map(|name| &name[VARIABLE_PREFIX.len()..]);
            let refusal = Refusal::UnknownKey {
                key: "the variable".to_owned(),
                meant: nearest(suffix, suffixes).map(|suffix| format!("{VARIABLE_PREFIX}{suffix}")),
                accepted: names.join(", "),
            };
            loading.refuse(origin, refusal);
            continue;
        };
        let Some(text) = value.to_str() else {
            loading.refuse(origin, Refusal::NotUtf8);
            continue;
        };
        if loading.set(key, Raw::Variable(text), &origin).is_none() {
            let value = shown(&format!("{text:?}"));
            loading.refuse(origin, Refusal::Value { key: key.to_string(), value, accepted: key.accepted() });
        }
    }
}

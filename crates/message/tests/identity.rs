//! Identities: what is equal, what is ordered, what never repeats (MD-1 to MD-3).

use std::collections::HashSet;
use std::thread;

use wow_message::{
    AggregateId, DEFAULT_TENANT, MessageId, Name, NamedAggregate, RequestId, Timestamp, Version,
};

fn account(id: &'static str) -> AggregateId {
    AggregateId::new(NamedAggregate::new("bank", "account"), id)
}

#[test]
fn an_aggregate_id_is_equal_only_in_all_four_parts() {
    let base = account("1");
    assert_eq!(base.tenant(), &DEFAULT_TENANT);
    assert_eq!(
        base,
        AggregateId::new(NamedAggregate::new(String::from("bank"), String::from("account")), "1")
    );
    assert_ne!(base, account("2"));
    assert_ne!(base, account("1").with_tenant("acme"));
    assert_ne!(base, AggregateId::new(NamedAggregate::new("shop", "account"), "1"));
    assert_ne!(base, AggregateId::new(NamedAggregate::new("bank", "customer"), "1"));
    let all: HashSet<_> = [base.clone(), account("1"), account("1").with_tenant("acme")].into();
    assert_eq!(all.len(), 2);
}

#[test]
fn the_ordering_key_ignores_the_tenant_and_nothing_else() {
    let id = account("1");
    let key = id.key();
    assert_eq!(key, account("1").with_tenant("acme").key());
    assert_ne!(key, account("2").key());
    assert_ne!(key, AggregateId::new(NamedAggregate::new("shop", "account"), "1").key());
    assert_ne!(key, AggregateId::new(NamedAggregate::new("bank", "customer"), "1").key());
}

#[test]
fn ids_are_ordered_only_inside_one_aggregate_type() {
    assert!(account("1") < account("2"));
    let elsewhere = AggregateId::new(NamedAggregate::new("bank", "customer"), "2");
    assert_eq!(account("1").partial_cmp(&elsewhere), None);
}

#[test]
fn a_version_is_initialised_from_one_on() {
    assert!(!Version::UNINITIALISED.is_initialised());
    assert!(Version::INITIAL.is_initialised());
    assert_eq!(Version::UNINITIALISED.next(), Version::INITIAL);
    assert_eq!(Version::MAX.next(), Version::MAX);
}

#[test]
fn message_ids_never_repeat_across_threads() {
    let ids: Vec<Vec<MessageId>> = thread::scope(|scope| {
        let makers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..20_000).map(|_| MessageId::next()).collect())).collect();
        makers.into_iter().map(|maker| maker.join().expect("no maker panics")).collect()
    });
    for of_one_thread in &ids {
        assert!(of_one_thread.is_sorted_by(|a, b| a < b), "ids of one thread rise strictly");
    }
    let distinct: HashSet<_> = ids.iter().flatten().collect();
    assert_eq!(distinct.len(), 80_000);
}

#[test]
fn ids_of_one_millisecond_keep_rising_when_the_counter_overflows() {
    let now = Timestamp::from_millis(1_000_000);
    let ids: Vec<_> = (0..10_000).map(|_| MessageId::next_at(now)).collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_clock_that_steps_back_does_not_make_ids_fall() {
    let later = MessageId::next_at(Timestamp::from_millis(2_000_000));
    assert!(MessageId::next_at(Timestamp::from_millis(1_000_000)) > later);
}

#[test]
fn a_message_id_is_written_as_a_uuid_of_version_7_and_read_back() {
    let text = MessageId::next().to_string();
    assert_eq!(text.as_bytes()[14], b'7');
    assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    assert_eq!(text.parse::<MessageId>().expect("its own form").to_string(), text);
    for wrong in ["", "7", &text.to_uppercase().replace('-', "_"), &text[1..], &format!("{text}0")] {
        assert!(wrong.parse::<MessageId>().is_err(), "{wrong} is no message id");
    }
}

#[test]
fn a_request_id_is_the_same_written_or_as_an_id() {
    let id = MessageId::next();
    let written = RequestId::from(id.to_string());
    assert_eq!(written, RequestId::from(id));
    assert!(written.is_message(id));
    assert_ne!(RequestId::from("r-1"), RequestId::from("r-2"));
    assert_eq!(RequestId::from("r-1").to_string(), "r-1");
}

#[test]
fn a_name_is_its_text_whatever_it_is_made_of() {
    assert_eq!(Name::from_static("a"), Name::copied("a"));
    let set: HashSet<_> = [Name::from("a"), Name::from(String::from("a"))].into();
    assert_eq!(set.len(), 1);
    assert!(set.contains("a"));
}

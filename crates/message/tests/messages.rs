//! Commands, streams and headers: what is fixed, what is copied, what travels on (MD-10 to MD-12, MD-16).

use wow_message::{
    AggregateId, Command, CommandUse, Creation, DEFAULT_REVISION, ErrorInfo, EventStream, Header, Message,
    NamedAggregate, Version, codes, keys,
};

fn id() -> AggregateId {
    AggregateId::new(NamedAggregate::new("bank", "account"), "1")
}

#[test]
fn a_read_only_header_refuses_every_write_and_keeps_its_entries() {
    let mut header = Header::new();
    header.set(keys::OPERATOR, "ann").expect("writable");
    header.make_read_only();
    assert_eq!(header.set("x", "y").expect_err("read-only").key, "x");
    assert!(header.remove(keys::OPERATOR).is_err());
    assert_eq!(header.iter().collect::<Vec<_>>(), [(keys::OPERATOR, "ann")]);
    assert!(header.clone().is_read_only(), "a clone is as read-only as what it was made from");
}

#[test]
fn setting_an_entry_again_replaces_it() {
    let mut header = Header::new();
    header.set("k", "1").expect("writable");
    header.set("k", "2").expect("writable");
    assert_eq!((header.len(), header.get("k")), (1, Some("2")));
    assert_eq!(header.remove("k").expect("writable").as_deref(), Some("2"));
    assert!(header.is_empty());
}

#[test]
fn a_copy_of_a_message_has_a_writable_header_of_its_own() {
    let mut command = Command::builder(id(), ()).build();
    command.make_read_only();
    let mut copy = command.writable_copy();
    copy.header_mut().set(keys::LOCAL_FIRST, "true").expect("a copy is writable");
    assert_eq!(command.header().get(keys::LOCAL_FIRST), None);
    assert_eq!(copy.id(), command.id());
}

#[test]
fn a_create_command_expects_version_zero() {
    let create =
        Command::builder(id(), ()).creation(Creation::Create).expect_version(Version::new(7)).build();
    assert_eq!(create.expected_version(), Some(Version::UNINITIALISED));
    let update = Command::builder(id(), ()).expect_version(Version::UNINITIALISED).build();
    assert_eq!(update.creation(), Creation::MustExist, "expecting version 0 does not make a create command");
}

#[test]
fn a_command_has_harmless_defaults() {
    let command = Command::builder(id(), 5_u8).build();
    assert!(command.request_id().is_message(command.id()));
    assert_eq!(command.usage(), CommandUse::Handled);
    assert_eq!((command.owner().as_str(), command.space().as_str()), ("", ""));
    assert_eq!(command.expected_version(), None);
    assert_eq!(command.body_as::<u8>(), Some(&5));
    assert_eq!(command.body_as::<u16>(), None);
}

#[test]
fn a_stream_carries_what_its_command_hands_on() {
    let mut header = Header::new();
    header.set(keys::OPERATOR, "ann").expect("writable");
    header.set(keys::LOCAL_FIRST, "true").expect("writable");
    header.set(keys::COMMAND_WAIT_ID, "w").expect("writable");
    let mut command =
        Command::builder(id(), ()).request_id("r").owner("ann").space("s").header(header).build();
    command.make_read_only();
    let stream =
        EventStream::answering(&command, Version::new(3)).event("paid", 1_i32).build().expect("an event");
    assert_eq!(stream.request_id(), command.request_id());
    assert_eq!(stream.command_id(), Some(command.id()));
    assert_eq!((stream.owner().as_str(), stream.space().as_str()), ("ann", "s"));
    assert_eq!(stream.version(), Version::new(3));
    assert_eq!(stream.header().get(keys::OPERATOR), Some("ann"));
    assert_eq!(stream.header().get(keys::COMMAND_WAIT_ID), Some("w"));
    assert_eq!(stream.header().get(keys::LOCAL_FIRST), None, "routing marks are not handed on");
    assert!(!stream.header().is_read_only());
}

#[test]
fn events_of_a_stream_are_numbered_and_only_the_last_is_last() {
    let stream = EventStream::builder(id(), Version::INITIAL)
        .event("a", 1)
        .event("b", 2)
        .event("c", 3)
        .build()
        .expect("events");
    let seen: Vec<_> =
        stream.events().iter().map(|e| (e.name().as_str(), e.sequence(), e.is_last())).collect();
    assert_eq!(seen, [("a", 1, false), ("b", 2, false), ("c", 3, true)]);
    assert!(
        stream.events().iter().all(|e| *e.revision() == DEFAULT_REVISION && e.version() == Version::INITIAL)
    );
}

#[test]
fn a_stream_of_only_failures_says_so() {
    let failure = || ErrorInfo::new(codes::NOT_FOUND, "no account");
    let only =
        EventStream::builder(id(), Version::INITIAL).event("failed", failure()).build().expect("an event");
    assert!(only.is_only_errors());
    let mixed = EventStream::builder(id(), Version::INITIAL)
        .event("failed", failure())
        .event("a", 1)
        .build()
        .expect("events");
    assert!(!mixed.is_only_errors());
}

//! Which state takes which command, and which refusal comes first (T83, CA-5).

use wow_dispatch::InstanceCache;
use wow_eventsourcing::LifecycleEvent;
use wow_message::{Command, CommandBuilder, Creation, Name, Version, codes};

use crate::bank::{Change, Move, Open, Recover, account_id, moving};
use crate::commands::Desk;

/// A command of a type that the account has no function for.
struct Unknown;

fn to_move() -> CommandBuilder<Move> {
    Command::builder(account_id("1"), moving("1", 1)).name("move")
}

fn change(event: LifecycleEvent) -> Command {
    Command::builder(account_id("1"), Change { account: "1", event }).name("change").build()
}

/// An account of ann's in the space s1, at version 1.
fn desk() -> Desk {
    let desk = Desk::new(InstanceCache::default());
    let open = Command::builder(account_id("1"), Open { account: "1" });
    assert_eq!(desk.fails(open.creation(Creation::Create).owner("ann").space("s1").build()), None);
    desk
}

#[test]
fn an_expected_version_must_be_the_current_one() {
    let desk = desk();
    let conflict = Some(codes::COMMAND_EXPECT_VERSION_CONFLICT.to_owned());
    assert_eq!(desk.fails(to_move().expect_version(Version::new(2)).build()), conflict);
    assert_eq!(desk.fails(to_move().expect_version(Version::UNINITIALISED).build()), conflict);
    assert_eq!(desk.fails(to_move().expect_version(Version::INITIAL).build()), None);
    assert_eq!(desk.fails(to_move().expect_version(Version::new(2)).build()), None);
}

#[test]
fn an_aggregate_that_does_not_exist_takes_only_commands_that_create() {
    let desk = desk();
    let to_other = |creation| Command::builder(account_id("2"), moving("2", 1)).creation(creation).build();
    assert_eq!(desk.fails(to_other(Creation::MustExist)).as_deref(), Some(codes::NOT_FOUND));
    assert_eq!(desk.fails(to_other(Creation::Allowed)), None);
    assert_eq!(desk.fails(to_other(Creation::MustExist)), None, "now it exists");
}

#[test]
fn the_owner_must_be_the_right_one_if_the_command_names_one() {
    let desk = desk();
    assert_eq!(desk.fails(to_move().owner("bob").build()).as_deref(), Some(codes::ILLEGAL_ACCESS_OWNER));
    assert_eq!(desk.fails(to_move().owner("ann").build()), None);
    assert_eq!(desk.fails(to_move().build()), None);
    assert_eq!(desk.fails(change(LifecycleEvent::OwnerTransferred { to: Name::from("bob") })), None);
    assert_eq!(desk.fails(to_move().owner("bob").build()), None);
    assert_eq!(desk.fails(to_move().owner("ann").build()).as_deref(), Some(codes::ILLEGAL_ACCESS_OWNER));
}

#[test]
fn the_space_must_be_the_right_one_if_the_command_names_one() {
    let desk = desk();
    assert_eq!(desk.fails(to_move().space("s2").build()).as_deref(), Some(codes::ILLEGAL_ACCESS_SPACE));
    assert_eq!(desk.fails(to_move().space("s1").build()), None);
    assert_eq!(desk.fails(change(LifecycleEvent::SpaceTransferred { to: Name::from("s2") })), None);
    assert_eq!(desk.fails(to_move().space("s2").build()), None);
}

#[test]
fn a_deleted_aggregate_takes_only_its_recovery() {
    let desk = desk();
    let recover = || Command::builder(account_id("1"), Recover { account: "1" }).name("recover").build();
    assert_eq!(desk.fails(recover()).as_deref(), Some(codes::ILLEGAL_STATE), "it is not deleted");
    assert_eq!(desk.fails(change(LifecycleEvent::Deleted)), None);
    assert_eq!(desk.fails(to_move().build()).as_deref(), Some(codes::ILLEGAL_ACCESS_DELETED));
    assert_eq!(desk.fails(recover()), None);
    assert_eq!(desk.fails(to_move().build()), None);
    assert_eq!(desk.versions(), [1, 2, 3, 4]);
}

#[test]
fn a_command_without_function_is_an_illegal_argument() {
    let desk = desk();
    let unknown = Command::builder(account_id("1"), Unknown).name("unknown").build();
    assert_eq!(desk.fails(unknown).as_deref(), Some(codes::ILLEGAL_ARGUMENT));
    let elsewhere = wow_message::AggregateId::new(wow_message::NamedAggregate::new("shop", "cart"), "1");
    let unknown = Command::builder(elsewhere, Unknown).name("unknown").build();
    assert_eq!(desk.fails(unknown).as_deref(), Some(codes::ILLEGAL_ARGUMENT));
}

#[test]
fn the_first_guard_in_the_way_decides() {
    let desk = desk();
    assert_eq!(desk.fails(change(LifecycleEvent::Deleted)), None);
    // Everything is wrong with this command; what is put right uncovers the next refusal.
    let wrong = || Command::builder(account_id("1"), Unknown).name("unknown");
    let steps = [
        (
            wrong().expect_version(Version::new(9)).owner("bob").space("s2"),
            codes::COMMAND_EXPECT_VERSION_CONFLICT,
        ),
        (wrong().expect_version(Version::new(2)).owner("bob").space("s2"), codes::ILLEGAL_ACCESS_OWNER),
        (wrong().owner("ann").space("s2"), codes::ILLEGAL_ACCESS_SPACE),
        (wrong().owner("ann").space("s1"), codes::ILLEGAL_ACCESS_DELETED),
    ];
    for (command, code) in steps {
        assert_eq!(desk.fails(command.build()).as_deref(), Some(code));
    }
    let recover = Command::builder(account_id("1"), Recover { account: "1" }).name("recover").build();
    assert_eq!(desk.fails(recover), None);
    assert_eq!(desk.fails(wrong().build()).as_deref(), Some(codes::ILLEGAL_ARGUMENT));

    let nowhere = || Command::builder(account_id("2"), Unknown).name("unknown");
    let conflict = desk.fails(nowhere().expect_version(Version::new(9)).build());
    assert_eq!(conflict.as_deref(), Some(codes::COMMAND_EXPECT_VERSION_CONFLICT));
    assert_eq!(
        desk.fails(nowhere().build()).as_deref(),
        Some(codes::NOT_FOUND),
        "before the type is looked at"
    );
}

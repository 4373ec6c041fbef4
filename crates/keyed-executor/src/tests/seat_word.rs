//! The word of a thread, state by state: what each call makes of it, and what each look says (rule 1 of seat/README.md).
//!
//! The loom models show that no two threads get in at once; here is what the single steps are.

use crate::seat::token::{Back, Token};

/// All that is told of a word, in one line: owned, has a seat, rests, lent, inside, asleep.
fn told(token: &Token) -> [bool; 6] {
    [
        token.is_owned(),
        token.has_seat(),
        token.rests(),
        token.lent().is_some(),
        token.inside().is_some(),
        token.asleep().is_some(),
    ]
}

const OWNED: [bool; 6] = [true, true, false, false, false, false];
const LENT: [bool; 6] = [false, true, false, true, true, false];
const HELD: [bool; 6] = [false, true, false, false, true, false];
const PARKED: [bool; 6] = [false, true, true, false, false, true];
const BORROWED: [bool; 6] = [false, true, false, false, false, false];
const NO_SEAT: [bool; 6] = [false, false, true, false, false, false];

fn owned() -> Token {
    let token = Token::parked();
    assert_eq!(token.take_back(), Back::Mine);
    token
}

#[test]
fn each_state_is_told_as_what_it_is() {
    assert_eq!(told(&Token::parked()), PARKED);
    assert_eq!(told(&Token::without_seat()), NO_SEAT);
    let token = owned();
    assert_eq!(told(&token), OWNED);
    for (leave, left) in [(Token::lend as fn(&Token), LENT), (Token::hold, HELD), (Token::park, PARKED)] {
        leave(&token);
        assert_eq!(told(&token), left);
        assert_eq!(token.take_back(), Back::Mine);
        assert_eq!(told(&token), OWNED);
    }
    token.lend();
    let borrowed = token.try_borrow().expect("it was lent");
    assert_eq!(told(&token), BORROWED);
    token.give_back(borrowed);
    assert_eq!(told(&token), LENT);
}

#[test]
fn only_a_seat_whose_occupant_left_it_is_borrowed_and_by_one() {
    assert!(Token::without_seat().try_borrow().is_none());
    let token = owned();
    assert!(token.try_borrow().is_none());
    for (leave, parked, taken) in
        [(Token::lend as fn(&Token), false, true), (Token::hold, false, false), (Token::park, true, false)]
    {
        leave(&token);
        let seen = token.inside().or(token.asleep()).expect("it was left");
        let borrowed = token.try_borrow().expect("it was left");
        assert_eq!((borrowed.was_parked(), borrowed.may_be_taken()), (parked, taken));
        assert!(borrowed.is(seen) && !borrowed.is(seen + 1));
        assert!(token.try_borrow().is_none(), "it is borrowed already");
        token.give_back(borrowed);
        assert_eq!(token.inside().or(token.asleep()), Some(seen), "it is as it was found");
        assert_eq!(token.take_back(), Back::Mine);
    }
}

#[test]
fn the_same_word_is_the_same_piece_of_code_and_the_next_one_has_another() {
    let token = owned();
    let mut words = std::collections::BTreeSet::new();
    for _ in 0..100 {
        token.lend();
        let word = token.lent().expect("it was lent");
        assert_eq!((token.lent(), token.inside()), (Some(word), Some(word)));
        assert!(words.insert(word));
        assert_eq!(token.take_back(), Back::Mine);
        token.hold();
        assert!(words.insert(token.inside().expect("it is held")));
        assert_eq!(token.take_back(), Back::Mine);
        token.park();
        assert!(words.insert(token.asleep().expect("it was parked")));
        assert_eq!(token.take_back(), Back::Mine);
    }
}

#[test]
fn a_thread_whose_seat_was_taken_has_lost_it_until_it_gets_another() {
    let token = owned();
    let mut words = std::collections::BTreeSet::new();
    for _ in 0..100 {
        token.lend();
        assert!(
            words.insert(token.lent().expect("it was lent")),
            "no piece of code is taken for an earlier one"
        );
        let borrowed = token.try_borrow().expect("it was lent");
        token.take(borrowed);
        assert_eq!(told(&token), NO_SEAT);
        assert_eq!(token.take_back(), Back::Lost);
        assert_eq!(told(&token), NO_SEAT);
        token.own();
        assert_eq!(told(&token), OWNED);
    }
}

//! Lists that would grow with time and are cut when they are full: what is gone is taken off then, and not looked for before.

use crate::Keyspace;
use crate::look::Look;
use crate::sync::lock;
use crate::tests::held_seat::executor;

#[test]
fn the_list_of_dispatches_lets_go_of_those_that_are_over_when_it_is_full() {
    let executor = executor("many");
    let shared = executor.inner();
    let open = || -> Keyspace<u32, u32> { executor.keyspace(|_| std::future::ready(())) };
    let listed = || {
        let dispatches = lock(&shared.dispatches);
        (dispatches.len(), dispatches.capacity())
    };
    let kept = open();
    let room = listed().1;
    assert!(room >= 4, "{room}: it grows by doubling");
    for n in 2..=room {
        drop(open());
        assert_eq!(listed(), (n, room), "what is over is not looked for while there is room");
    }
    for _ in 0..3 {
        drop(open());
        assert_eq!(listed(), (2, room), "the one that is left, and the new one");
        (3..=room).for_each(|_| drop(open()));
        assert_eq!(listed(), (room, room));
    }
    drop(kept);
    drop(open());
    assert_eq!(listed(), (1, room), "only the new one");
    executor.close();
}

#[test]
fn a_look_is_cut_to_its_limit_when_it_has_found_twice_as_much_and_not_each_time() {
    for (limit, full) in [(3, 64), (32, 64), (40, 80)] {
        let mut look = Look::new(1, limit);
        for n in 1..full {
            look.add_in_place();
            assert_eq!(look.found.len(), n);
        }
        look.add_in_place();
        assert_eq!(look.found.len(), limit, "of {full}");
        assert_eq!(look.sums[0].mailboxes, full);
    }
}

//! L11: a handler that panics while the next message of its key arrives ends its message; the key goes on and both
//! permits come back.
//!
//! ```text
//! submitter: submit 0, submit 1        worker: start 0 panics, start 1
//! ```
//! Looked for: a mailbox left running or a permit lost on the unwinding path. Broken by hand: returning from `turn` on
//! a panic without the completion leaves `drained` waiting, which loom reports as a deadlock.
//!
//! Searched: preemption bound 2: about 33,000 executions, 6 s.

#[test]
fn loom_panic_path() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let expected = info.payload().downcast_ref::<&str>().is_some_and(|text| *text == "expected");
        if !expected {
            quiet(info);
        }
    }));
    super::model::model("panic_path", || {
        let executor = super::model::executor(1, 2, 1);
        let keyspace = executor.keyspace(|message: u32| {
            if message == 0 {
                std::panic::panic_any("expected");
            }
            std::future::ready(())
        });
        keyspace.try_submit(1u8, 0).expect("there is room");
        keyspace.try_submit(1u8, 1).expect("there is room");
        let ledger = loom::future::block_on(keyspace.drained());
        assert_eq!((ledger.failed, ledger.handled, ledger.in_flight()), (1, 1, 0));
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
    });
}

//! A contender's own process for what has no rate: `wow-peers-behaviour blocking|idle CONTENDER` writes the answer in
//! one line. `wow-peers --behaviour` starts it, and ends it where it hangs.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool: printing is its job")]

use std::process::ExitCode;

use wow_peers::behaviour::probe::Question;
use wow_peers::contender::ALL;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [question, contender] = arguments.as_slice() else {
        eprintln!("usage: wow-peers-behaviour blocking|idle CONTENDER");
        return ExitCode::FAILURE;
    };
    let asked = Question::ALL.into_iter().find(|known| known.name() == question);
    let entry = ALL.iter().find(|entry| entry.id == contender);
    let (Some(asked), Some(entry)) = (asked, entry) else {
        eprintln!("error: no such question or contender: {question} {contender}");
        return ExitCode::FAILURE;
    };
    match asked.answer(entry) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("error: {contender} {fault}");
            ExitCode::FAILURE
        }
    }
}

//! A process that is asked one question and ended, by its own handle, if it does not answer in time.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It wrote this and ended.
    Answer(String),
    /// It did not end in time.
    Nothing,
    /// It ended with a failure.
    Failed(ExitStatus),
}

/// Runs a program until it ends, for at most so long.
pub(crate) fn run(program: &Path, arguments: &[&str], limit: Duration) -> io::Result<Said> {
    let mut child =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut output = child.stdout.take().ok_or_else(|| io::Error::other("a pipe was asked for"))?;
    let (sender, written) = channel();
    // Ends with the child, which closes its end of the pipe.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.read_to_string(&mut text).map(|_| text);
        // Nobody listens any more where the child was too late.
        let _ = sender.send(read);
    });
    let written = written.recv_timeout(limit);
    if written.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    reader.join().map_err(|_| io::Error::other("the reader of a pipe panicked"))?;
    match written {
        Err(_) => Ok(Said::Nothing),
        Ok(_) if !status.success() => Ok(Said::Failed(status)),
        Ok(text) => Ok(Said::Answer(text?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(line: &str, limit: Duration) -> Said {
        run(Path::new("sh"), &["-c", line], limit).expect("there is a shell")
    }

    #[test]
    fn an_answer_is_what_was_written() {
        assert_eq!(shell("echo yes", LONG), Said::Answer("yes\n".to_owned()));
    }

    #[test]
    fn a_failure_is_no_answer() {
        assert!(matches!(shell("echo yes; exit 3", LONG), Said::Failed(status) if status.code() == Some(3)));
    }

    #[test]
    fn who_does_not_answer_is_ended() {
        // Were it not ended, this would take an hour.
        assert_eq!(shell("exec sleep 3600", Duration::from_millis(50)), Said::Nothing);
    }
}

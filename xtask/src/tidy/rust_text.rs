//! Rust source split into code and comments, line by line.
//!
//! It owns the few rules of the lexer that tell a comment from a string from a lifetime. Invariant: both halves have
//! the lines and columns of the original, with blanks for what belongs to the other half; literals keep their quotes
//! and lose their contents. It builds no syntax tree.

/// The two halves of a file.
#[derive(Debug)]
pub(crate) struct RustText {
    pub(crate) code: String,
    pub(crate) comments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    BlockComment { depth: u32 },
    Text,
    RawText { hashes: usize },
}

impl RustText {
    /// Splits a file.
    pub(crate) fn of(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut split = Self { code: String::new(), comments: String::new() };
        let mut state = State::Code;
        let mut at = 0;
        while at < chars.len() {
            let (taken, part, next) = step(&chars, at, state);
            for (offset, &c) in chars[at..at + taken].iter().enumerate() {
                let edge = offset == 0 || offset + 1 == taken;
                let blank = if c == '\n' { '\n' } else { ' ' };
                let code = part == Part::Code || part == Part::Literal && edge;
                split.code.push(if code { c } else { blank });
                split.comments.push(if part == Part::Comment { c } else { blank });
            }
            at += taken;
            state = next;
        }
        split
    }

    /// Lines of code and comment side by side, counted from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        self.code
            .lines()
            .zip(self.comments.lines())
            .enumerate()
            .map(|(n, (code, comment))| (n + 1, code, comment))
    }

    /// For each line, whether it is in a module that is compiled for tests only.
    pub(crate) fn test_lines(&self) -> Vec<bool> {
        let mut marks = vec![false; self.code.lines().count()];
        let mut from = 0;
        while let Some(start) = self.code[from..].find("#[cfg(").map(|found| from + found) {
            from = start + "#[cfg(".len();
            let Some(end) = self.code[from..].find(")]").map(|found| from + found) else { break };
            let condition = &self.code[from..end];
            let item = self.code[end + 2..].trim_start();
            let is_module = item.starts_with("mod ") || item.starts_with("pub(crate) mod ");
            let for_tests = words(condition).any(|word| word == "test") && !condition.contains("not(test");
            if let (true, true, Some(open)) = (is_module, for_tests, item.find(['{', ';'])) {
                let open = self.code.len() - item.len() + open;
                if self.code[open..].starts_with('{') {
                    let close = closing_brace(&self.code, open);
                    let first = self.code[..start].matches('\n').count();
                    let last = self.code[..close].matches('\n').count();
                    marks.iter_mut().take(last + 1).skip(first).for_each(|mark| *mark = true);
                    from = close;
                }
            }
        }
        marks
    }
}

/// What a few characters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    /// The contents of a string.
    Contents,
    /// A whole literal of which only the quotes are kept.
    Literal,
}

/// How many characters belong together at `at`, what they are, and the state after them.
fn step(chars: &[char], at: usize, state: State) -> (usize, Part, State) {
    let c = chars[at];
    let next = chars.get(at + 1).copied();
    match state {
        State::Code => begin(chars, at),
        State::LineComment if c == '\n' => (1, Part::Code, State::Code),
        State::LineComment => (1, Part::Comment, state),
        State::BlockComment { depth } => match (c, next) {
            ('/', Some('*')) => (2, Part::Comment, State::BlockComment { depth: depth + 1 }),
            ('*', Some('/')) if depth == 1 => (2, Part::Comment, State::Code),
            ('*', Some('/')) => (2, Part::Comment, State::BlockComment { depth: depth - 1 }),
            _ => (1, Part::Comment, state),
        },
        State::Text => match (c, next) {
            ('\\', Some(_)) => (2, Part::Contents, state),
            ('"', _) => (1, Part::Code, State::Code),
            _ => (1, Part::Contents, state),
        },
        State::RawText { hashes } => {
            let closes = c == '"' && chars[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
            if closes { (hashes + 1, Part::Code, State::Code) } else { (1, Part::Contents, state) }
        }
    }
}

/// The same in code, where everything else begins.
fn begin(chars: &[char], at: usize) -> (usize, Part, State) {
    let word_before = is_word(at.checked_sub(1).map(|before| chars[before]));
    let raw = |prefix: usize| {
        let hashes = if word_before { None } else { raw_text(chars, at + prefix - 1) };
        hashes.map_or((1, Part::Code, State::Code), |hashes| {
            (prefix + hashes + 1, Part::Code, State::RawText { hashes })
        })
    };
    match (chars[at], chars.get(at + 1).copied()) {
        ('/', Some('/')) => (2, Part::Comment, State::LineComment),
        ('/', Some('*')) => (2, Part::Comment, State::BlockComment { depth: 1 }),
        ('"', _) => (1, Part::Code, State::Text),
        ('\'', _) => (character_literal(chars, at), Part::Literal, State::Code),
        ('r', Some('"' | '#')) => raw(1),
        ('b' | 'c', Some('r')) => raw(2),
        _ => (1, Part::Code, State::Code),
    }
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// The number of `#` between `r` at `at` and the quote, if this is how a raw string begins.
fn raw_text(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// The length of a character literal at `at`, or 1 if it is the tick of a lifetime.
fn character_literal(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), Some(_)) => {
            let after = chars[at + 3..].iter().position(|c| *c == '\'');
            after.map_or(1, |found| found + 4)
        }
        (Some(_), Some('\'')) => 3,
        _ => 1,
    }
}

/// The words of a piece of code.
pub(crate) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The positions where `word` stands alone, not as a part of a longer word.
pub(crate) fn whole_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !is_word(before) && !is_word(after)
    })
}

/// The position of the brace that closes the one at `open`, or the end.
fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text =
            "let a = \"// no\"; // yes \"b\"\n/* x /* y */ z */ let c = 'd'; let e: &'f str = r#\"g\"h\"#;";
        let split = RustText::of(text);
        let (first, second) = split.code.split_once('\n').unwrap();
        assert_eq!(first.trim_end(), "let a = \"     \";");
        assert_eq!(second.trim_start(), "let c = ' '; let e: &'f str = r#\"   \"#;");
        assert!(split.comments.contains("// yes \"b\""));
        assert!(split.comments.contains("/* x /* y */ z */"));
        assert_eq!(split.code.len(), text.len());
    }

    #[test]
    fn escaped_quotes_and_byte_strings_end_where_they_end() {
        let split = RustText::of(r#"f(b"\"", '\'', '\u{1f}', br"\", r#type) // end"#);
        assert_eq!(split.code.trim_end(), r#"f(b"  ", '  ', '      ', br" ", r#type)"#);
        assert_eq!(split.comments.trim_start(), "// end");
    }

    #[test]
    fn modules_for_tests_are_marked_to_their_closing_brace() {
        let text = "use a;\n#[cfg(test)]\nmod tests {\n    fn f() { }\n}\nfn g() {}\n#[cfg(all(test, not(x)))]\nmod b {\n}\n#[cfg(not(test))]\nmod c {}\n#[cfg(test)]\nmod d;\n";
        let marks = RustText::of(text).test_lines();
        let marked: Vec<_> = marks.iter().enumerate().filter(|(_, m)| **m).map(|(n, _)| n + 1).collect();
        assert_eq!(marked, [2, 3, 4, 5, 7, 8, 9]);
    }

    #[test]
    fn whole_words_only() {
        assert_eq!(whole_word("unsafe unsafe_fn xunsafe (unsafe)", "unsafe").collect::<Vec<_>>(), [0, 26]);
    }
}

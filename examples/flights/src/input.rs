//! The input: where the bytes come from, unpacked if they are packed.
//!
//! Owns the open file or stream. Invariants: whether it is gzip is told by its first two bytes, not by its name; a
//! stream that ends inside a gzip member is an error, never a short file; a line is held up to a bound. It does not know
//! what a line means.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;

/// January, inside the program, so that it runs from any folder.
const JANUARY: &[u8] = include_bytes!("../data/flights-2013-01.csv.gz");
/// How the embedded file is called in messages.
const JANUARY_NAME: &str = "flights-2013-01.csv.gz";
/// The longest line that is kept.
pub(crate) const MAX_LINE: usize = 64 * 1024;
const BUFFER: usize = 64 * 1024;

/// An open input.
pub(crate) struct Input {
    /// How it is called in messages.
    pub(crate) name: String,
    /// Bytes of the file as stored, if that can be told.
    pub(crate) n_bytes: Option<u64>,
    /// Bytes read of it so far.
    pub(crate) bytes_read: Arc<AtomicU64>,
    reader: Box<dyn BufRead + Send>,
    /// The last line ended where the bytes at hand end: the next may take its time.
    drained: bool,
}

/// One line without its end.
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    TooLong,
}

impl Input {
    /// January 2013.
    pub(crate) fn january() -> io::Result<Self> {
        let n_bytes = JANUARY.len() as u64;
        Self::over(JANUARY_NAME.to_owned(), Some(n_bytes), Box::new(JANUARY))
    }

    /// Standard input.
    pub(crate) fn stdin() -> io::Result<Self> {
        Self::over("standard input".to_owned(), None, Box::new(io::stdin()))
    }

    /// The file at `path`.
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        let n_bytes = metadata.is_file().then_some(metadata.len());
        Self::over(path.display().to_string(), n_bytes, Box::new(file))
    }

    /// Bytes from anywhere, called `name` in messages.
    pub(crate) fn over(name: String, n_bytes: Option<u64>, raw: Box<dyn Read + Send>) -> io::Result<Self> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let mut raw = Counting { raw, bytes_read: Arc::clone(&bytes_read) };
        let mut head = [0; 2];
        let n_head = read_full(&mut raw, &mut head)?;
        if n_head == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is empty"));
        }
        let whole = Cursor::new(head[..n_head].to_vec()).chain(raw);
        let whole = BufReader::with_capacity(BUFFER, whole);
        let reader: Box<dyn BufRead + Send> = if head[..n_head] == [0x1f, 0x8b] {
            Box::new(BufReader::with_capacity(BUFFER, Unpacking::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self { name, n_bytes, bytes_read, reader, drained: false })
    }

    /// Whether the next line may have to be waited for.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Reads the next line into `buffer`; `None` at the end.
    pub(crate) fn next_line<'a>(&mut self, buffer: &'a mut Vec<u8>) -> io::Result<Option<Line<'a>>> {
        buffer.clear();
        let mut too_long = false;
        let mut any = false;
        loop {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                break;
            }
            any = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            too_long |= buffer.len() + piece.len() > MAX_LINE;
            if !too_long {
                buffer.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.drained = used == available.len();
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        if buffer.last() == Some(&b'\r') {
            buffer.pop();
        }
        Ok(Some(if too_long { Line::TooLong } else { Line::Text(buffer) }))
    }
}

fn read_full(raw: &mut impl Read, mut head: &mut [u8]) -> io::Result<usize> {
    let wanted = head.len();
    while !head.is_empty() {
        match raw.read(head) {
            Ok(0) => break,
            Ok(n) => head = &mut head[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - head.len())
}

/// Counts the bytes as they are stored.
struct Counting {
    raw: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.raw.read(buffer)?;
        // Relaxed: a number for a progress bar, which orders nothing.
        self.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Unpacks one gzip member after the other, and says in words what a stream suffers from.
struct Unpacking<R> {
    /// `None` after the last member.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Unpacking<R> {
    fn new(packed: R) -> Self {
        Self { member: Some(GzDecoder::new(packed)) }
    }
}

impl<R: BufRead> Read for Unpacking<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buffer).map_err(in_words)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let follows = member.get_mut().fill_buf()?.first().copied();
            match follows {
                None => self.member = None,
                Some(0x1f) => {
                    self.member = self.member.take().map(|member| GzDecoder::new(member.into_inner()));
                }
                Some(_) => {
                    let text = "the gzip data is followed by bytes that are not gzip data";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
        }
        Ok(0)
    }
}

fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Interrupted => error,
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(io::ErrorKind::UnexpectedEof, "the gzip data is truncated")
        }
        kind => io::Error::new(kind, format!("the gzip data is damaged: {error}")),
    }
}

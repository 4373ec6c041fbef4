//! The identity of a file: whether two names, or a name and a standard stream, mean the same one.
//!
//! Plain data. Invariant: on unix it is device and inode, so links of either kind and redirections are seen through;
//! elsewhere it is the resolved path, and streams have none. A terminal and the like have none either: nothing is kept
//! in them that could be overwritten.

use std::path::Path;

/// Equal for the same file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileId(Id);

#[cfg(unix)]
type Id = (u64, u64);
#[cfg(not(unix))]
type Id = std::path::PathBuf;

#[cfg(unix)]
impl FileId {
    /// The file `path` leads to, if there is one.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::told_by(&path.metadata().ok()?)
    }

    /// The file that standard input was redirected from.
    pub(crate) fn stdin() -> Option<Self> {
        Self::open_as(&std::io::stdin())
    }

    /// The file that standard output was redirected to.
    pub(crate) fn stdout() -> Option<Self> {
        Self::open_as(&std::io::stdout())
    }

    fn open_as(stream: &impl std::os::fd::AsFd) -> Option<Self> {
        let file = std::fs::File::from(stream.as_fd().try_clone_to_owned().ok()?);
        Self::told_by(&file.metadata().ok()?)
    }

    fn told_by(metadata: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        (!metadata.file_type().is_char_device()).then(|| Self((metadata.dev(), metadata.ino())))
    }
}

#[cfg(not(unix))]
impl FileId {
    /// The file `path` leads to, if there is one.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        path.canonicalize().ok().map(Self)
    }

    /// Unknown here.
    pub(crate) fn stdin() -> Option<Self> {
        None
    }

    /// Unknown here.
    pub(crate) fn stdout() -> Option<Self> {
        None
    }
}

//! Nothing: the package exists for its benches, in `benches/`, each a program of its own.
//!
//! Owns no code, so that no bench can depend on anything but what it measures.
#![forbid(unsafe_code)]

//! Nothing: the package exists for its benches, in `benches/`, each a program of its own.
//!
//! Owns no code, so that no bench can depend on anything but what it measures.
#![forbid(unsafe_code)]

/// The examples of the repository's front page, compiled and run like every other: no published package holds that page.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct FrontPage;

/// The examples of the operator's page.
#[cfg(doctest)]
#[doc = include_str!("../../docs/operating.md")]
struct Operating;

//! The configuration of a service: the section `wow.dispatch`, from TOML or YAML files and the environment.
//!
//! A [`Loader`] reads files in order, then the environment over them; [`Config::load`] is the short form. Everything
//! that is wrong is refused at once: each [`Problem`] names the file and line, or the variable, with the key as it was
//! written, its value and what would be accepted. Defaults and ranges are those of `keyed_executor` and
//! `wow_dispatch`, never repeated here. Nothing below this crate reads a file or a variable, and this crate starts nothing.
//!
//! The `config` crate parses the files. Its merging of sources is not used: it tells neither which file or variable a
//! value came from nor that a key is unknown, so both are done here over the parsed tables.
//!
//! # Examples
//! ```
//! use wow_config::Loader;
//!
//! let config = Loader::new().text("service.toml", "[wow.dispatch]\nworkers = 2\nspin = '20us'\n").load()?;
//! assert_eq!(config.dispatch.workers, 2);
//!
//! let wrong = Loader::new().text("service.toml", "[wow.dispatch]\nworkers = 0\nworker = 1\n").load();
//! let error = wrong.expect_err("two problems");
//! assert_eq!(
//!     error.to_string(),
//!     "service.toml:2: wow.dispatch.workers is 0, accepted is a whole number from 1 to 1024\n\
//!      service.toml:3: wow.dispatch.worker is not a key, did you mean wow.dispatch.workers?"
//! );
//! # Ok::<(), wow_config::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod file;
mod guard;
mod key;
mod lines;
mod loader;
mod value;
mod variables;

pub use error::{ConfigError, Problem, Refusal};
pub use key::Key;
pub use loader::{Config, Loader, Origin};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

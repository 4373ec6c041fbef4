//! The contenders, one file for each way of keeping order.

pub(crate) mod actix;
pub(crate) mod bare_loop;
pub(crate) mod group_by;
pub(crate) mod kameo;
pub(crate) mod lanes;
pub(crate) mod limits;
pub(crate) mod live_keys;
pub(crate) mod mutexes;
pub(crate) mod ours;
pub(crate) mod ractor;
pub(crate) mod tasks;
pub(crate) mod threads;

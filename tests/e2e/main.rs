//! End to end: the real binary, real components, real files and signals.

mod peer;
mod stage;
mod talk;

mod bridged;
mod control;
mod crash;
mod facts;
mod failures;
mod follow;
mod grow;
mod hostile;
mod live;
mod oddities;
mod once;
mod pending;
mod socket;
mod untouched;

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
mod misplaced;
mod oddities;
mod once;
mod passed_over;
mod pending;
mod roots;
mod socket;
mod untouched;

//! End to end: the real binary, real components, real files and signals.

mod peer;
#[path = "../../host/tests/models/server.rs"]
mod server;
mod stage;
mod talk;

mod asking;
mod bridged;
mod budget;
mod compacting;
mod control;
mod crash;
mod crowds;
mod cut_off;
mod explain;
mod facts;
mod failures;
mod fairness;
mod filters;
mod fire;
mod follow;
mod full;
mod grow;
mod holding;
mod hostile;
mod idle;
mod killed;
mod labels;
mod limit_keys;
mod live;
mod misplaced;
mod oddities;
mod once;
mod passed_over;
mod pending;
mod redact;
mod replay;
mod roots;
mod small;
mod socket;
mod store;
mod trim;
mod undo;
mod unsaid;
mod untouched;
mod verify;

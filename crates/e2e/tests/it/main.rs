//! Maestro as people meet it: the real binary with real rooms, and what may go wrong with either.

mod bad_input;
mod bad_rooms;
mod browser;
mod chaos;
mod data_directory;
mod command_line;
mod deletion;
mod full_disk;
mod identity;
mod killed_room;
mod lease;
mod other_languages;
mod placement;
mod recorded;
mod regions;
mod restart;
mod room_logs;
mod shipped;
mod starting;
mod sweep;
mod unreadable;
mod unwritable_log;
mod versions;

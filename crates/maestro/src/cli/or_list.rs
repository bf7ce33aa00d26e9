//! Plurals as commands: `maestro rooms`.

use clap::{ArgMatches, Args, FromArgMatches, Subcommand};

use super::{Context, Failure};

/// What is asked for by a plural: a list, unless a subcommand says something else.
#[derive(Debug)]
pub(super) enum OrList<C, L> {
    Command(C),
    List(L),
}

impl<C: Subcommand, L: Args> Args for OrList<C, L> {
    fn augment_args(command: clap::Command) -> clap::Command {
        C::augment_subcommands(L::augment_args(command))
            .subcommand_required(false)
            .arg_required_else_help(false)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<C: Subcommand, L: Args> FromArgMatches for OrList<C, L> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand_name() {
            Some(_) => C::from_arg_matches(matches).map(Self::Command),
            None => L::from_arg_matches(matches).map(Self::List),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<C, L> OrList<C, L> {
    pub(super) fn run(
        &self,
        context: &Context,
        run: impl FnOnce(&Context, &C) -> Result<(), Failure>,
        list: impl FnOnce(&Context, &L) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Command(command) => run(context, command),
            Self::List(options) => list(context, options),
        }
    }
}

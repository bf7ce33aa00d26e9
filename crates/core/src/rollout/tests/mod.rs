mod progress;
mod transitions;

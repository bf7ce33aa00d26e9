mod locks;
mod progress;
mod removals;
mod scene;
mod transitions;

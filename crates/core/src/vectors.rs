//! What real systems answered, recorded: lies beside the repository, in `shared/vectors`.

use std::path::Path;

use serde_json::Value;

/// Beside a worktree of the repository it is one folder further up.
pub(crate) fn read(name: &str) -> Vec<Value> {
    let name = format!("shared/vectors/{name}");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let found = workspace.ancestors().skip(1).map(|folder| folder.join(&name)).find(|path| path.exists());
    let path = found.unwrap_or_else(|| panic!("there is no ../{name} beside {}", workspace.display()));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

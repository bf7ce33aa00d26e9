//! Regions that were cordoned where the file comes from.

use crate::cli::{Client, Failure, Json, Resource, note};

/// Before any scheduler is imported, so that no room is started there. A region that is drained is cordoned: nothing that is
/// in it here is to go.
pub(super) fn cordon(client: &Client, cordoned: &[Json]) -> Result<(), Failure> {
    if cordoned.is_empty() {
        return Ok(());
    }
    let answer = client.get(&Resource::new(&["regions"]), "regions")?;
    for region in cordoned {
        let name = region.get("name").cell();
        let here = answer.get("regions").items().iter().find(|here| here.get("name") == region.get("name"));
        match here {
            None => {
                note(&format!("region {name} is cordoned in the file, and there is none here: passed over"));
            }
            Some(here) if here.get("cordoned").is_true() || here.get("draining").is_true() => {}
            Some(_) => {
                let reason = format!("imported: {}", region.get("reason").cell());
                let resource = Resource::new(&["regions", &name, "cordon"]).query("reason", reason);
                client.post(&resource, &Json::object([]))?;
                note(&format!("region {name} cordoned, as in the file"));
            }
        }
    }
    Ok(())
}

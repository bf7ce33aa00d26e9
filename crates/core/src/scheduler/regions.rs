//! The regions that a recipe names, compared with those that are configured. This is separate from reading a recipe,
//! because the configuration is not part of it.

use super::Recipe;
use crate::room::Region;
use crate::violation::Violation;

impl Recipe {
    /// Every region that is not configured, with its field.
    pub fn unconfigured_regions(&self, configured: &[Region]) -> Vec<Violation> {
        let placed = self.policies.placement.iter().flat_map(|policy| policy.regions.iter().enumerate());
        let placed = placed.map(|(index, region)| (format!("placement.regions[{index}].name"), &region.name));
        let bound = self.spec.region.iter().map(|name| ("spec.region".to_owned(), name));
        let known: Vec<_> = configured.iter().map(Region::as_str).collect();
        let known = known.join(", ");
        bound
            .chain(placed)
            .filter(|(_, name)| !configured.contains(name))
            .map(|(field, name)| {
                Violation::new(
                    field,
                    format!("{:?} is not a configured region; there is {known}", name.as_str()),
                )
            })
            .collect()
    }

    /// What a region that runs containers needs and processes do without.
    pub fn missing_for_containers(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (index, container) in self.spec.containers.iter().enumerate() {
            let mut need = |field: &str, value: &str, what: &str| {
                if value.is_empty() {
                    let field = format!("spec.containers[{index}].{field}");
                    violations.push(Violation::new(field, format!("is missing; {what} is needed")));
                }
            };
            need("image", &container.image, "the image to run");
            for (block, resources) in [("requests", &container.requests), ("limits", &container.limits)] {
                need(&format!("{block}.memory"), &resources.memory, "a quantity such as 64Mi");
                need(&format!("{block}.cpu"), &resources.cpu, "a quantity such as 100m");
            }
        }
        violations
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::scheduler::tests::recipe;

    #[test]
    fn regions_that_are_not_configured() {
        let recipe = recipe();
        let names =
            |names: &[&str]| names.iter().map(|name| Region::parse(name).unwrap()).collect::<Vec<_>>();
        let found = |configured: &[&str]| {
            let violations = recipe.unconfigured_regions(&names(configured));
            violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(found(&["us-east", "eu-west", "ap-south"]), "");
        expect![[r#"
            spec.region: "us-east" is not a configured region; there is eu-west, home
            placement.regions[0].name: "us-east" is not a configured region; there is eu-west, home"#]]
        .assert_eq(&found(&["eu-west", "home"]));
    }
}

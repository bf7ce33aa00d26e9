//! Where rooms would go: `{"id","regions":[{"name","weight","cap"}],"current":{…},"count","expand"}` asks,
//! `{"id","plan":{…},"reason"}` answers, with null for a plan where there is none.

use maestro_core::placement::{NoPlan, RegionFact, Standing, Weight, grow, shrink};
use maestro_core::policy::{PlacementPolicy, PlacementRegion, Refusal};
use maestro_core::room::Region;
use maestro_core::violation::Violation;
use serde::{Serialize, Serializer};

use super::Fields;

#[derive(Debug, Serialize)]
pub struct PlacementAnswer {
    /// Rooms by region, those without any left out.
    plan: Option<Numbers>,
    reason: String,
    /// How many of them could be handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    fits: Option<u64>,
}

/// An object in the order of the regions.
#[derive(Debug)]
struct Numbers(Vec<(Region, u64)>);

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(region, rooms)| (region.as_str(), rooms)))
    }
}

struct Case {
    regions: Vec<(Region, RegionFact)>,
    count: u64,
    grows: bool,
}

pub fn answer(fields: &Fields<'_>) -> Option<PlacementAnswer> {
    let Case { regions, count, grows } = read(fields)?;
    let facts: Vec<_> = regions.iter().map(|(_, fact)| *fact).collect();
    let plan = if grows { grow(&facts, count) } else { shrink(&facts, count) };
    Some(match plan {
        Err(no_plan @ NoPlan { fits }) => {
            let reason = Refusal::NoFeasiblePlan(no_plan).to_string();
            PlacementAnswer { plan: None, reason, fits: Some(fits) }
        }
        Ok(plan) => {
            let reason = explained(&regions, &plan, grows);
            let numbers = regions.into_iter().map(|(name, _)| name).zip(plan);
            let numbers = numbers.filter(|(_, rooms)| *rooms > 0).collect();
            PlacementAnswer { plan: Some(Numbers(numbers)), reason, fits: None }
        }
    })
}

/// What each region has, will have, and would have by its weight alone.
fn explained(regions: &[(Region, RegionFact)], plan: &[u64], grows: bool) -> String {
    let after = |fact: &RegionFact, rooms: u64| {
        let counted = i128::from(fact.rooms.counted);
        if grows { counted + i128::from(rooms) } else { counted - i128::from(rooms) }
    };
    let finals: Vec<_> = regions.iter().zip(plan).map(|((_, fact), rooms)| after(fact, *rooms)).collect();
    let total: i128 = finals.iter().sum();
    let weights: i128 = regions.iter().map(|(_, fact)| i128::from(fact.weight.get())).sum();
    let region = |((name, fact), after): (&(Region, RegionFact), &i128)| {
        let weight = i128::from(fact.weight.get());
        let (whole, rest) = (total * weight / weights, total * weight % weights);
        let share = match rest * 100 / weights {
            0 => whole.to_string(),
            hundredths => format!("{whole}.{hundredths:02}"),
        };
        format!("{name} {} → {after} (share {share})", fact.rooms.counted)
    };
    let parts: Vec<_> = regions.iter().zip(&finals).map(region).collect();
    format!("{total} rooms in total: {}", parts.join(", "))
}

fn read(fields: &Fields<'_>) -> Option<Case> {
    let count = fields.required_whole("count", 0..=u64::MAX);
    let expand = fields.flag("expand");
    let regions = regions(fields);
    Some(Case { regions: regions?, count: count?, grows: expand.unwrap_or(true) })
}

fn regions(fields: &Fields<'_>) -> Option<Vec<(Region, RegionFact)>> {
    let current = fields.object("current")?;
    let mut listed = Vec::new();
    let mut regions = Vec::new();
    for object in fields.objects("regions")? {
        let name = object.text("name").unwrap_or_default().into_owned();
        let region = object.check("name", Region::parse(&name));
        let weight = object.whole("weight", 0..=Weight::MAX.get());
        let weight = weight.unwrap_or(PlacementRegion::DEFAULT_WEIGHT.into());
        let cap = object.whole("cap", -1..=i64::MAX).and_then(|cap| u64::try_from(cap).ok());
        let counted = current.whole(&name, 0..=u64::MAX).unwrap_or(0);
        listed.push((name, Some(weight)));
        if let (Some(region), Some(weight)) = (region, Weight::new(weight)) {
            let rooms = Standing { counted, ..Standing::default() };
            regions.push((region, RegionFact { weight, cap, rooms }));
        }
    }
    let listed: Vec<(&str, Option<u64>)> =
        listed.iter().map(|(name, weight)| (name.as_str(), *weight)).collect();
    for Violation { field, reason } in PlacementPolicy::wrong_with_list(&listed) {
        fields.refuse::<()>(&format!("regions{field}"), reason);
    }
    for name in current.names().filter(|name| listed.iter().all(|(listed, _)| listed != name)) {
        current.refuse::<()>(name, "is not one of the regions");
    }
    fields.unless_refused(regions)
}

//! The schema as others will read it: which routes there are, and that they can be filled in.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use expect_test::expect;
use maestro_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, ReflectMessage};

fn pool() -> DescriptorPool {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap()
}

fn http_rule(method: &MethodDescriptor) -> DynamicMessage {
    let extension = method.parent_pool().get_extension_by_name("google.api.http").unwrap();
    method.options().get_extension(&extension).as_message().unwrap().clone()
}

/// The verb and the path of a method, and of its other paths.
fn routes_of(method: &MethodDescriptor) -> Vec<(String, String)> {
    let rule = http_rule(method);
    let others = rule.get_field_by_name("additional_bindings").unwrap().into_owned();
    let others = others.as_list().unwrap().iter().map(|other| route(other.as_message().unwrap()));
    [route(&rule)].into_iter().chain(others).collect()
}

fn route(rule: &DynamicMessage) -> (String, String) {
    let pattern = rule.descriptor().oneofs().next().unwrap();
    let verb = pattern.fields().find(|field| rule.has_field(field)).unwrap();
    (verb.name().to_uppercase(), rule.get_field(&verb).as_str().unwrap().to_owned())
}

#[test]
fn routes() {
    let mut lines = String::new();
    for service in pool().services() {
        for method in service.methods() {
            let name = method.full_name();
            for (verb, path) in routes_of(&method) {
                lines += &format!("{name} {verb} {path}\n");
            }
        }
    }
    expect![[r#"
        api.v1.SchedulersService.ListSchedulers GET /schedulers
        api.v1.SchedulersService.GetSchedulersInfo GET /schedulers/info
        api.v1.SchedulersService.GetScheduler GET /schedulers/{scheduler_name}
        api.v1.SchedulersService.GetScheduler GET /scheduler/{scheduler_name}
        api.v1.SchedulersService.CreateScheduler POST /schedulers
        api.v1.SchedulersService.NewSchedulerVersion POST /schedulers/{name}
        api.v1.SchedulersService.NewSchedulerVersion POST /scheduler/{name}
        api.v1.SchedulersService.PatchScheduler PATCH /schedulers/{name}
        api.v1.SchedulersService.PatchScheduler PATCH /scheduler/{name}
        api.v1.SchedulersService.SwitchActiveVersion PUT /schedulers/{scheduler_name}
        api.v1.SchedulersService.SwitchActiveVersion PUT /scheduler/{scheduler_name}
        api.v1.SchedulersService.DeleteScheduler DELETE /schedulers/{scheduler_name}
        api.v1.SchedulersService.DeleteScheduler DELETE /scheduler/{scheduler_name}
        api.v1.SchedulersService.GetSchedulerVersions GET /schedulers/{scheduler_name}/versions
        api.v1.OperationsService.ListOperations GET /schedulers/{scheduler_name}/operations
        api.v1.OperationsService.GetOperation GET /schedulers/{scheduler_name}/operations/{operation_id}
        api.v1.OperationsService.CancelOperation POST /schedulers/{scheduler_name}/operations/{operation_id}/cancel
        api.v1.RoomsService.UpdateRoomWithPing PUT /scheduler/{scheduler_name}/rooms/{room_name}/ping
        api.v1.RoomsService.ForwardRoomEvent POST /scheduler/{scheduler_name}/rooms/{room_name}/roomevent
        api.v1.RoomsService.ForwardPlayerEvent POST /scheduler/{scheduler_name}/rooms/{room_name}/playerevent
        api.v1.RoomsService.UpdateRoomStatus PUT /scheduler/{scheduler_name}/rooms/{room_name}/status
        api.v1.RoomsService.GetRoomAddress GET /scheduler/{scheduler_name}/rooms/{room_name}/address
        api.v1.RoomsService.AllocateRoom POST /scheduler/{scheduler_name}/rooms/allocate
        maestro.api.v1.ExplanationsService.ExplainOperation GET /schedulers/{scheduler_name}/operations/{operation_id}/explain
        maestro.api.v1.ExplanationsService.ListStuckOperations GET /schedulers/{scheduler_name}/operations/stuck
        maestro.api.v1.FleetService.AddRooms POST /schedulers/{scheduler_name}/add-rooms
        maestro.api.v1.FleetService.RemoveRooms POST /schedulers/{scheduler_name}/remove-rooms
        maestro.api.v1.FleetService.Resize POST /schedulers/{scheduler_name}/resize
        maestro.api.v1.FleetService.CreateRoom POST /schedulers/{scheduler_name}/rooms
        maestro.api.v1.FleetService.ListRooms GET /schedulers/{scheduler_name}/rooms
        maestro.api.v1.FleetService.GetRoom GET /schedulers/{scheduler_name}/rooms/{room_id}
        maestro.api.v1.FleetService.GetRoomLogs GET /schedulers/{scheduler_name}/rooms/{room_id}/logs
        maestro.api.v1.FleetService.GetAutoscalingDecisions GET /schedulers/{scheduler_name}/autoscaling
        maestro.api.v1.ImportsService.ImportScheduler POST /schedulers/{scheduler_name}/import
        maestro.api.v1.RolloutsService.GetRollout GET /schedulers/{scheduler_name}/rollout
        maestro.api.v1.RolloutsService.PauseRollout POST /schedulers/{scheduler_name}/rollout/pause
        maestro.api.v1.RolloutsService.ResumeRollout POST /schedulers/{scheduler_name}/rollout/resume
        maestro.api.v1.RolloutsService.CancelRollout POST /schedulers/{scheduler_name}/rollout/cancel
        maestro.api.v1.LocksService.ListLocks GET /scheduler/{scheduler_name}/locks
        maestro.api.v1.LocksService.ListLocks GET /schedulers/{scheduler_name}/locks
        maestro.api.v1.LocksService.ReleaseLock DELETE /scheduler/{scheduler_name}/locks/{lock_key}
        maestro.api.v1.LocksService.ReleaseLock DELETE /schedulers/{scheduler_name}/locks/{lock_key}
        maestro.api.v1.RegionsService.ListRegions GET /regions
        maestro.api.v1.RegionsService.CordonRegion POST /regions/{region_name}/cordon
        maestro.api.v1.RegionsService.DrainRegion POST /regions/{region_name}/drain
        maestro.api.v1.RegionsService.UncordonRegion POST /regions/{region_name}/uncordon
        maestro.api.v1.RegionsService.ConfirmRegionLost POST /regions/{region_name}/confirm-lost
        maestro.api.v1.EventsService.ListEvents GET /schedulers/{scheduler_name}/events
        maestro.api.v1.EventsService.ReplayEvents POST /schedulers/{scheduler_name}/events/replay
        maestro.api.v1.AllocationsService.CreateAllocations POST /schedulers/{scheduler_name}/allocations
        maestro.api.v1.AllocationsService.ListAllocations GET /schedulers/{scheduler_name}/allocations
        maestro.api.v1.AllocationsService.GetAllocation GET /schedulers/{scheduler_name}/allocations/{allocation_id}
        maestro.api.v1.AllocationsService.ReturnAllocation DELETE /schedulers/{scheduler_name}/allocations/{allocation_id}
        maestro.api.v1.Events.Watch GET /events
    "#]]
    .assert_eq(&lines);
}

#[test]
fn parameters_of_paths_are_fields_and_bodies_follow_the_verb() {
    for service in pool().services() {
        for method in service.methods() {
            let routes = routes_of(&method);
            for (_, path) in &routes {
                let parameters =
                    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
                for parameter in parameters {
                    assert!(method.input().get_field_by_name(parameter).is_some(), "{path}: {parameter}");
                }
            }
            let (verb, path) = &routes[0];
            let body = http_rule(&method).get_field_by_name("body").unwrap().as_str().unwrap().to_owned();
            let expected = if ["GET", "DELETE"].contains(&verb.as_str()) { "" } else { "*" };
            assert_eq!(body, expected, "{verb} {path}");
        }
    }
}

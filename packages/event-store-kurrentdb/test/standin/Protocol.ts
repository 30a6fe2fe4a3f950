/**
 * The published protocol: message classes and service definitions, which `@eventstore/db-client` ships. They register themselves on
 * google-protobuf's global `proto`, so no second copy of them, such as its successor's, may be loaded into the same process.
 */

export { default as gossipService } from "@eventstore/db-client/generated/gossip_grpc_pb.js"
export { default as gossip } from "@eventstore/db-client/generated/gossip_pb.js"
export { default as featuresService } from "@eventstore/db-client/generated/serverfeatures_grpc_pb.js"
export { default as features } from "@eventstore/db-client/generated/serverfeatures_pb.js"
export { default as shared } from "@eventstore/db-client/generated/shared_pb.js"
export { default as status } from "@eventstore/db-client/generated/status_pb.js"
export { default as streamsService } from "@eventstore/db-client/generated/streams_grpc_pb.js"
export { default as streams } from "@eventstore/db-client/generated/streams_pb.js"
export { default as any } from "google-protobuf/google/protobuf/any_pb.js"
export { default as empty } from "google-protobuf/google/protobuf/empty_pb.js"

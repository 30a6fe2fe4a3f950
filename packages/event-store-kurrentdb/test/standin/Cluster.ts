/** Answers what a client asks first: the server's features, and the nodes of the cluster. */
import { createHash } from "node:crypto"
import type { handleUnaryCall, ServiceDefinition } from "@grpc/grpc-js"
import { uuidOf } from "./Messages.ts"
import type { Address, Node } from "./Node.ts"
import { features, featuresService, gossip, type shared, streamsService } from "./Protocol.ts"

export const getSupportedMethods =
  (node: Node, version: string, batchAppend: boolean): handleUnaryCall<shared.Empty, features.SupportedMethods> =>
  (call, respond) => {
    const refusal = node.admit("GetSupportedMethods", call)
    const failing = refusal ?? node.failing(call, node.faults.features())
    if (failing === "silent") return
    if (failing !== undefined) return respond(failing)
    const methods = [
      ...methodsOf(streamsService.StreamsService, (name) =>
        name === "batchappend" ? ["deadline_duration"] : name === "read" ? ["position", "events"] : []
      ),
      ...methodsOf(featuresService.ServerFeaturesService, () => [])
    ].filter((method) => batchAppend || method.getMethodName() !== "batchappend")
    respond(null, new features.SupportedMethods().setEventStoreServerVersion(version).setMethodsList(methods))
  }

const methodsOf = (service: ServiceDefinition, featuresOf: (method: string) => Array<string>) =>
  Object.values(service).map(({ path }) => {
    const [, name = "", method = ""] = path.toLowerCase().split("/")
    return new features.SupportedMethod().setServiceName(name).setMethodName(method).setFeaturesList(featuresOf(method))
  })

const { LEADER, FOLLOWER } = gossip.MemberInfo.VNodeState

/** `members` begins with the leader. */
export const readGossip =
  (node: Node, members: () => ReadonlyArray<Address>): handleUnaryCall<shared.Empty, gossip.ClusterInfo> =>
  (call, respond) => {
    const refusal = node.admit("Gossip", call)
    if (refusal !== undefined) return respond(refusal)
    const told = members().map(({ host, port }, i) =>
      new gossip.MemberInfo()
        .setInstanceId(uuidOf(instanceOf(port)))
        .setState(i === 0 ? LEADER : FOLLOWER)
        .setIsAlive(true)
        .setTimeStamp("1")
        .setHttpEndPoint(new gossip.EndPoint().setAddress(host).setPort(port))
    )
    respond(null, new gossip.ClusterInfo().setMembersList(told))
  }

const instanceOf = (port: number): string =>
  createHash("sha256")
    .update(`${port}`)
    .digest("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")

"""Serves the frontend crush to the harness, over gRPC."""

import os
import sys
from concurrent import futures

import frontend
import frontend_pb2
import grpc


def describe(request, context):
    try:
        return frontend.describe(request)
    except ValueError as err:
        context.abort(grpc.StatusCode.UNKNOWN, str(err))


def main():
    if os.environ.get("HARNESS_FRONTEND_PLUGIN") != "research-harness-frontend":
        sys.exit("this is a plugin of the research harness, which starts it")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers((
        grpc.method_handlers_generic_handler("harness.frontend.v1.Frontend", {
            "Describe": grpc.unary_unary_rpc_method_handler(
                describe,
                request_deserializer=frontend_pb2.DescribeRequest.FromString,
                response_serializer=frontend_pb2.DescribeResponse.SerializeToString,
            ),
        }),
    ))
    socket = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "socket")
    server.add_insecure_port("unix:" + socket)
    server.start()
    print("1|1|unix|" + socket + "|grpc", flush=True)  # the handshake
    server.wait_for_termination()


if __name__ == "__main__":
    main()

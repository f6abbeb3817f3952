# A container with the program and the certificates of authorities, and nothing else: no shell, no user names, no programs.
# Tasks call URLs; see docs/operations.md for tasks that run commands.
#
#   docker build -t dts .
#   docker run -d --name dts -p 127.0.0.1:8420:8420 -v dts:/var/lib/dts dts
#   docker exec dts dts ls

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make cross-linux-$TARGETARCH && install -D bin/dts-linux-$TARGETARCH /out/usr/bin/dts && \
    install -d -m 1777 /out/tmp && install -d -m 0755 /out/var/lib && install -d -m 0700 /data/dts && \
    install -D -m 644 /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ca-certificates.crt

FROM scratch
# The program is root's. The server's user, which has no name, owns the data and nothing else. Of a folder that is copied some
# builders do not keep the mode, of those in it all do.
COPY --from=build /out /
COPY --from=build --chown=65532:65532 /data /var/lib/
USER 65532:65532
ENV DTS_DATA=/var/lib/dts DTS_LISTEN=0.0.0.0:8420
VOLUME /var/lib/dts
EXPOSE 8420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=1m CMD ["/usr/bin/dts", "status"]
ENTRYPOINT ["/usr/bin/dts"]
CMD ["serve"]

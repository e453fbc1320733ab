# Farebox with its database on a volume: see guides/container.md
FROM denoland/deno:2.9.6

# Everything is fetched while the image is built; the container starts without a network.
WORKDIR /app
COPY deno.json imports.json service.lock cli.lock main.ts ./
COPY src src
COPY guides guides
COPY scripts/farebox.ts scripts/verify_ledger.ts scripts/
COPY scripts/farebox scripts/farebox
RUN deno cache --lock=service.lock --frozen main.ts
RUN deno cache --lock=cli.lock --frozen scripts/farebox.ts

# The database is the one thing that is written, and belongs to a user who is not root.
RUN mkdir /data && chown deno:deno /data
VOLUME /data
USER deno

ENV HOST=0.0.0.0 PORT=8000 KV_PATH=/data/farebox.kv DENO_NO_UPDATE_CHECK=1
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["deno", "eval", "const { ok } = await fetch('http://127.0.0.1:8000/readyz'); Deno.exit(ok ? 0 : 1)"]

# As `deno task start` does, from what the image holds alone.
CMD ["run", "--cached-only", "--lock=service.lock", "--frozen", "--v8-flags=--invocation-count-for-turbofan=1000,--expose-gc", "--no-prompt", "--no-remote", "--allow-net", "--allow-env", "--allow-sys=systemMemoryInfo", "--allow-read=/app,/data", "--allow-write=/data", "main.ts"]

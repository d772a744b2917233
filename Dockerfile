# docker build -t etch . && docker run --rm etch
FROM debian:12-slim
WORKDIR /etch
COPY scripts/setup.sh scripts/
RUN scripts/setup.sh build && rm -rf /var/lib/apt/lists/*
COPY . .
RUN scripts/quickstart.sh
ENV PATH="/etch/build/release:$PATH"
CMD ["scripts/quickstart.sh"]

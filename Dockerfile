# The Python that the tests run on. `make pin-images` writes the image's digest here and into docker-compose.yml.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 RAG_DATA_DIR=/data
WORKDIR /app

# torch as its CPU build, whose hash is not known, since PyPI's would bring CUDA's gigabytes; all else by its hash.
COPY locks/app.txt locks/postgres.txt locks/
RUN pip install --no-deps --extra-index-url https://download.pytorch.org/whl/cpu "torch==2.13.0+cpu" \
    && pip install --no-deps --require-hashes -r locks/app.txt -r locks/postgres.txt

COPY . .
RUN useradd --system --uid 10001 --home-dir /data pagelight \
    && mkdir /data && chown pagelight /data
USER pagelight
VOLUME /data
EXPOSE 8501

CMD ["python", "-m", "streamlit", "run", "main.py", "--server.address", "0.0.0.0", "--server.port", "8501", "--server.headless", "true"]
